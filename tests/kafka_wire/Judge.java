import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads messages with Kafka's code and returns their fields, until its input ends.
 *
 * Request:  int32 length of the rest, modified UTF-8 class name, int16 version, the message's bytes.
 * Response: int32 length of the rest, then int8 1, int32 length and bytes of the message written again, its JSON (UTF-8);
 *           or int8 0 and the exception of reading or writing (UTF-8).
 */
public final class Judge {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.", "org.apache.kafka.common.metadata.", "org.apache.kafka.raft.generated.",
        "org.apache.kafka.coordinator.group.generated."
    };
    private static final Map<String, Class<?>> MESSAGES = new HashMap<>();
    private static final Map<Class<?>, Method> TO_JSON = new HashMap<>();

    public static void main(String[] args) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        while (true) {
            byte[] asked;
            try {
                asked = new byte[in.readInt()];
            } catch (EOFException end) {
                return;
            }
            in.readFully(asked);
            byte[] answer = answer(asked);
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    private static byte[] answer(byte[] asked) {
        try {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(asked));
            String name = in.readUTF();
            return judged(name, in.readShort(), in.readAllBytes());
        } catch (InvocationTargetException e) {
            return refused(e.getCause());
        } catch (Exception | StackOverflowError e) {
            return refused(e);
        }
    }

    private static byte[] judged(String name, short version, byte[] bytes) throws Exception {
        Class<?> type = messageClass(name);
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        message.read(readable, version);
        if (readable.remaining() != 0) {
            throw new IllegalArgumentException(readable.remaining() + " bytes are left");
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(written), cache, version);
        return accepted(written.flip(), json(type, message, version));
    }

    private static byte[] accepted(ByteBuffer written, String json) {
        byte[] text = json.getBytes(StandardCharsets.UTF_8);
        ByteBuffer answer = ByteBuffer.allocate(5 + written.remaining() + text.length);
        return answer.put((byte) 1).putInt(written.remaining()).put(written).put(text).array();
    }

    private static byte[] refused(Throwable e) {
        byte[] why = String.valueOf(e).getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + why.length).put((byte) 0).put(why).array();
    }

    private static Class<?> messageClass(String name) throws ClassNotFoundException {
        Class<?> known = MESSAGES.get(name);
        for (int i = 0; known == null && i < PACKAGES.length; i++) {
            try {
                known = Class.forName(PACKAGES[i] + name);
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        if (known == null) throw new ClassNotFoundException(name);
        MESSAGES.put(name, known);
        return known;
    }

    private static String json(Class<?> type, Message message, short version) throws Exception {
        Method write = TO_JSON.get(type);
        if (write == null) {
            write = Class.forName(type.getName() + "JsonConverter").getMethod("write", type, short.class);
            TO_JSON.put(type, write);
        }
        JsonNode node = (JsonNode) write.invoke(null, message, version);
        return node.toString();
    }
}
