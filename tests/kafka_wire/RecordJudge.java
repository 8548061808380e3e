import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Reads record batches with Kafka 3.9's code, until its input ends: checks them, lists their records,
 * and builds batches again from their records (control batches are only read).
 *
 * Request:  int32 length of the rest, the batches.
 * Response: as Judge.java, with the batches written again in place of the message.
 */
public final class RecordJudge {
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
            return judged(asked);
        } catch (RuntimeException e) {
            return refused(e);
        }
    }

    private static byte[] judged(byte[] bytes) {
        ArrayNode batches = JsonNodeFactory.instance.arrayNode();
        ByteBuffer written = ByteBuffer.allocate(2 * bytes.length + 1024);
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batch.ensureValid();
            ObjectNode node = batches.addObject();
            node.put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset());
            node.put("partition_leader_epoch", batch.partitionLeaderEpoch());
            node.put("max_timestamp_ms", batch.maxTimestamp());
            node.put("producer_id", batch.producerId()).put("producer_epoch", batch.producerEpoch());
            node.put("base_sequence", batch.baseSequence());
            node.put("is_transactional", batch.isTransactional()).put("is_control", batch.isControlBatch());
            node.put("compression", batch.compressionType().id);
            MemoryRecordsBuilder builder = batch.isControlBatch() ? null : builder(batch);
            ArrayNode records = node.putArray("records");
            for (Record record : batch) {
                records.add(recordNode(record));
                if (builder != null) builder.append(record);
            }
            written.put(builder == null ? ByteBuffer.allocate(0) : builder.build().buffer());
        }
        return accepted(written.flip(), batches.toString());
    }

    private static MemoryRecordsBuilder builder(MutableRecordBatch batch) {
        return new MemoryRecordsBuilder(
            new ByteBufferOutputStream(256), batch.magic(), Compression.of(batch.compressionType()).build(), batch.timestampType(),
            batch.baseOffset(), RecordBatch.NO_TIMESTAMP, batch.producerId(), batch.producerEpoch(), batch.baseSequence(),
            batch.isTransactional(), false, batch.partitionLeaderEpoch(), Integer.MAX_VALUE);
    }

    private static ObjectNode recordNode(Record record) {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("offset", record.offset()).put("timestamp_ms", record.timestamp());
        node.put("key", base64(record.key())).put("value", base64(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value() == null ? null : base64(ByteBuffer.wrap(header.value())));
        }
        return node;
    }

    private static String base64(ByteBuffer bytes) {
        if (bytes == null) return null;
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return Base64.getEncoder().encodeToString(copy);
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
}
