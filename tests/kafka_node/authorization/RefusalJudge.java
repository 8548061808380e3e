import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Refuses requests as Kafka does (AbstractRequest.getErrorResponse), until its input ends.
 *
 * Input, one line per request:   API key, version, error code, base64 of the request's body, separated by blanks.
 * Output, one line per request:  base64 of the response's body; empty where the request or the response does not exist.
 */
public final class RefusalJudge {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine())
            System.out.println(answer(line.split(" ", -1)));
    }

    private static String answer(String[] fields) {
        try {
            ApiKeys key = ApiKeys.forId(Integer.parseInt(fields[0]));
            short version = Short.parseShort(fields[1]);
            ByteBuffer body = ByteBuffer.wrap(Base64.getDecoder().decode(fields[3]));
            AbstractRequest request = AbstractRequest.parseRequest(key, version, body).request;
            Errors error = Errors.forCode(Short.parseShort(fields[2]));
            AbstractResponse response = request.getErrorResponse(0, error.exception());
            ByteBuffer written = MessageUtil.toByteBuffer(response.data(), version);
            byte[] bytes = new byte[written.remaining()];
            written.get(bytes);
            return Base64.getEncoder().encodeToString(bytes);
        } catch (Exception none) {
            return "";
        }
    }
}
