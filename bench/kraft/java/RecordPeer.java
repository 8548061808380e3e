import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.internals.BatchBuilder;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Writes and reads metadata records with Kafka's own classes, timed by the JVM's clock.
 *
 * Arguments: "encode" and a number of PartitionChangeRecords, which are one batch, or "replay" and the file of a snapshot. First line out: the CRC-32
 * of the batch, or the number of partitions of the image. Then, for each line in, a number of runs, the nanoseconds of one of them.
 */
public final class RecordPeer {
    interface Work {
        long run() throws Exception;
    }

    private static long sink;

    public static void main(String[] arguments) throws Exception {
        boolean encodes = arguments[0].equals("encode");
        List<ApiMessageAndVersion> changes = encodes ? changes(Integer.parseInt(arguments[1])) : List.of();
        byte[] snapshot = encodes ? new byte[0] : Files.readAllBytes(Path.of(arguments[1]));
        ByteBuffer buffer = ByteBuffer.allocate(8 * 1024 * 1024);
        Work work = encodes ? () -> encode(changes, buffer).remaining() : () -> replay(snapshot).topics().topicsById().size();
        System.out.println(encodes ? checksum(encode(changes, buffer)) : partitions(replay(snapshot)));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String runs = in.readLine(); runs != null; runs = in.readLine()) {
            int count = Integer.parseInt(runs);
            long started = System.nanoTime();
            for (int run = 0; run < count; run++)
                sink += work.run();
            System.out.println((System.nanoTime() - started) / count);
        }
        if (sink == 42)
            System.err.println("never: this only keeps the compiler from leaving the work out");
    }

    /** The leader and the ISR of partitions 0, 1, 2 … of one topic, as bench/kraft/metadata_records.py has them in columns. */
    private static List<ApiMessageAndVersion> changes(int count) {
        List<ApiMessageAndVersion> found = new ArrayList<>();
        for (int partition = 0; partition < count; partition++)
            found.add(new ApiMessageAndVersion(
                new PartitionChangeRecord().setPartitionId(partition).setTopicId(new Uuid(1, 2)).setLeader(partition % 4 + 1)
                    .setIsr(List.of(partition % 4 + 1, (partition + 1) % 4 + 1)),
                (short) 2));
        return found;
    }

    private static ByteBuffer encode(List<ApiMessageAndVersion> records, ByteBuffer buffer) {
        buffer.clear();
        BatchBuilder<ApiMessageAndVersion> builder = new BatchBuilder<>(
            buffer, MetadataRecordSerde.INSTANCE, Compression.NONE, 7, 5, 3, buffer.capacity());
        ObjectSerializationCache cache = new ObjectSerializationCache();
        for (ApiMessageAndVersion record : records)
            builder.appendRecord(record, cache);
        return builder.build().buffer();
    }

    private static long checksum(ByteBuffer batch) {
        CRC32 checksum = new CRC32();
        checksum.update(batch.duplicate());
        return checksum.getValue();
    }

    private static MetadataImage replay(byte[] snapshot) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().build();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(snapshot)).batches()) {
            batch.ensureValid();
            if (batch.isControlBatch()) continue;
            for (Record record : batch) {
                ByteBuffer value = record.value();
                delta.replay(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(value), value.remaining()).message());
            }
        }
        delta.finishSnapshot();
        return delta.apply(new MetadataProvenance(1, 1, 1, true));
    }

    private static long partitions(MetadataImage image) {
        return image.topics().topicsById().values().stream().mapToLong(topic -> topic.partitions().size()).sum();
    }
}
