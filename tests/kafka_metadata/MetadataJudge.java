import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.OptionalInt;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;

/**
 * Reads metadata with Kafka's code and writes it again, until its input ends. A line is a command, its answer is one line:
 *
 *   log FILE        the batches of a log: records of a snapshot of them, each in base64
 *   snapshot FILE   the same for the batches of a snapshot
 *   versions        levels of metadata.version, with the versions of RegisterBroker, Partition, PartitionChange, RegisterController,
 *                   UserScramCredential, DelegationToken, EndTransaction, ClearElr and ZkMigrationState records, separated by commas; -1: none
 */
public final class MetadataJudge {
    private static final PrintStream ANSWERS = System.out;

    public static void main(String[] args) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            String answer;
            try {
                answer = switch (words[0]) {
                    case "log" -> rewritten(log(read(words[1])));
                    case "snapshot" -> rewritten(snapshot(read(words[1])));
                    default -> versions();
                };
            } catch (Throwable error) {
                answer = "error " + error;
            }
            ANSWERS.println(answer.replace("\n", " "));
            ANSWERS.flush();
        }
    }

    private static List<Batch<ApiMessageAndVersion>> read(String file) throws Exception {
        List<Batch<ApiMessageAndVersion>> found = new ArrayList<>();
        ByteBuffer content = ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(content).batches()) {
            if (batch.isControlBatch()) continue;
            List<ApiMessageAndVersion> records = new ArrayList<>();
            for (Record record : batch) {
                ByteBuffer value = record.value();
                records.add(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(value), value.remaining()));
            }
            found.add(Batch.data(
                batch.baseOffset(), batch.partitionLeaderEpoch(), batch.maxTimestamp(), batch.sizeInBytes(), records));
        }
        return found;
    }

    private static MetadataImage log(List<Batch<ApiMessageAndVersion>> batches) {
        MetadataImage[] latest = {MetadataImage.EMPTY};
        MetadataBatchLoader loader = new MetadataBatchLoader(
            new LogContext(), Time.SYSTEM,
            (message, error) -> new RuntimeException(message, error),
            (delta, image, manifest) -> latest[0] = image,
            new DefaultSupportedConfigChecker());
        LeaderAndEpoch leader = new LeaderAndEpoch(OptionalInt.of(1), 1);
        for (Batch<ApiMessageAndVersion> batch : batches) {
            loader.loadBatch(batch, leader);
            loader.maybeFlushBatches(leader, true);
        }
        return latest[0];
    }

    private static MetadataImage snapshot(List<Batch<ApiMessageAndVersion>> batches) {
        MetadataDelta delta = new MetadataDelta.Builder().setSupportedConfigChecker(new DefaultSupportedConfigChecker()).build();
        for (Batch<ApiMessageAndVersion> batch : batches) {
            for (ApiMessageAndVersion record : batch.records()) delta.replay(record.message());
        }
        delta.finishSnapshot();
        return delta.apply(new MetadataProvenance(1, 1, 1, true));
    }

    private static String rewritten(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        List<String> values = new ArrayList<>();
        for (ApiMessageAndVersion record : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer value = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
            MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(value));
            values.add(Base64.getEncoder().encodeToString(value.array()));
        }
        return String.join(" ", values);
    }

    private static String versions() {
        List<String> found = new ArrayList<>();
        for (MetadataVersion version : MetadataVersion.values()) {
            found.add(version.featureLevel() + " " + version.registerBrokerRecordVersion() + " " + version.partitionRecordVersion()
                + " " + version.partitionChangeRecordVersion()
                + " " + (version.isControllerRegistrationSupported() ? version.registerControllerRecordVersion() : -1)
                + " " + (version.isScramSupported() ? 0 : -1) + " " + (version.isDelegationTokenSupported() ? 0 : -1)
                + " " + (version.isMetadataTransactionSupported() ? 0 : -1) + " " + (version.isElrSupported() ? 0 : -1)
                + " " + (version.isMigrationSupported() ? 0 : -1));
        }
        return String.join(",", found);
    }
}
