import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Base64;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

/**
 * Reads records of __consumer_offsets with Kafka's coordinator and writes them again, until its input ends.
 *
 * A line is the key and the value in Base64, separated by a space; "-" is no value. So is the answer, or "error" and the exception.
 */
public final class GroupRecordJudge {
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
            System.out.flush();
        }
    }

    private static String answer(String[] asked) {
        try {
            ByteBuffer key = ByteBuffer.wrap(Base64.getDecoder().decode(asked[0]));
            ByteBuffer value = asked[1].equals("-") ? null : ByteBuffer.wrap(Base64.getDecoder().decode(asked[1]));
            CoordinatorRecord record = SERDE.deserialize(key, value);
            byte[] written = SERDE.serializeValue(record);
            Base64.Encoder encoder = Base64.getEncoder();
            return encoder.encodeToString(SERDE.serializeKey(record)) + " " + (written == null ? "-" : encoder.encodeToString(written));
        } catch (RuntimeException e) {
            return "error " + e;
        }
    }
}
