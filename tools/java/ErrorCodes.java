import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints Kafka's error codes, one JSON object per line: code, name, default message, and whether the error is retriable. */
public final class ErrorCodes {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.printf("{\"code\":%d,\"name\":\"%s\",\"message\":%s,\"retriable\":%b}%n",
                error.code(), error.name(), quoted(error.message()), error.exception() instanceof RetriableException);
        }
    }

    private static String quoted(String text) {
        return text == null ? "null" : '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
