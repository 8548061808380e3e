import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * A local folder as a disk or as an object store, with a fault at the n-th operation below `root`: SIGKILL of the process group, an answer
 * 503, no answer in time, or a refusal of this and all later operations, as if the process had ended. Operations are numbered from 1 in the order in which they begin. Files of checksums are not counted.
 */
public final class FaultyStore {
    private FaultyStore() {}

    private static String root = "";
    private static String log = "";
    private static String action = "";
    private static int at = 0;
    private static boolean readsCount = false;
    private static int count = 0;
    private static String last = "";
    private static boolean halted = false;
    private static volatile long hiddenMs = 0;
    private static final Map<String, Long> APPEARED = new ConcurrentHashMap<>();

    /** Begin to count again; `fault` is kill, halt, 503, timeout or nothing. */
    public static synchronized void arm(String below, String fault, int number, boolean reads, String logFile) {
        root = below;
        action = fault;
        at = number;
        readsCount = reads;
        log = logFile;
        count = 0;
        last = "";
        halted = false;
    }

    /** Files that appear from now on are listed so many milliseconds later; they can be opened by name at once. */
    public static void listLate(long milliseconds) {
        APPEARED.clear();
        hiddenMs = milliseconds;
    }

    public static synchronized int count() {
        return count;
    }

    /** The operation at which the fault was, or an empty text. */
    public static synchronized String last() {
        return last;
    }

    /** Python's operations are counted by this, too. */
    public static void step(String what, String path) throws IOException {
        if (isCounted(path)) {
            next(what + " " + path);
        }
    }

    private static boolean isCounted(String path) {
        return !root.isEmpty() && path.startsWith(root) && !path.endsWith(".crc");
    }

    private static synchronized void next(String what) throws IOException {
        count++;
        if (!log.isEmpty()) {
            Files.writeString(Paths.get(log), what + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
        if (halted) {
            throw new IOException("this run has ended");
        }
        if (count != at) {
            return;
        }
        last = what;
        switch (action) {
            case "kill" -> kill();
            case "halt" -> halted = true;
            case "503" -> throw new IOException("Service Unavailable (Service: S3, Status Code: 503, Request ID: none)");
            case "timeout" -> throw new SocketTimeoutException("Read timed out");
            default -> { }
        }
        if (halted) {
            throw new IOException("this run has ended");
        }
    }

    /** Python leads the group, so that no part of the driver goes on. */
    private static void kill() throws IOException {
        long leader = ProcessHandle.current().parent().orElseThrow().pid();
        new ProcessBuilder("kill", "-9", "--", "-" + leader).start();
        try {
            Thread.sleep(600_000);
        } catch (InterruptedException interrupted) {
            throw new IOException(interrupted);
        }
    }

    private static String local(Path path) {
        return path.toUri().getPath();
    }

    private static void appeared(Path path) {
        if (hiddenMs > 0) {
            APPEARED.put(local(path), System.currentTimeMillis());
        }
    }

    private static boolean isListed(FileStatus status) {
        String path = local(status.getPath());
        Long since = APPEARED.get(path);
        return status.isDirectory() || path.contains("/_temporary/") || since == null
            || System.currentTimeMillis() - since >= hiddenMs;
    }

    /** Operations on a folder. */
    private static class Raw extends RawLocalFileSystem {
        private final boolean uploads;

        Raw(boolean uploads) {
            this.uploads = uploads;
        }

        /** Without the rights of the local file, which Hadoop reads for the scheme `file` only. */
        private static FileStatus plain(FileStatus one) {
            return new FileStatus(
                one.getLen(), one.isDirectory(), 1, one.getBlockSize(), one.getModificationTime(), one.getPath()
            );
        }

        private void read(String what, Path path) throws IOException {
            if (readsCount) {
                step(what, local(path));
            }
        }

        @Override
        public FSDataOutputStream create(
            Path path, boolean overwrite, int buffer, short replication, long block, Progressable progress
        ) throws IOException {
            step("create", local(path));
            OutputStream below = uploads
                ? new Upload(path)
                : new Closing(path, super.create(path, overwrite, buffer, replication, block, progress));
            return new FSDataOutputStream(below, null);
        }

        @Override
        public FSDataOutputStream create(
            Path path, FsPermission permission, boolean overwrite, int buffer, short replication, long block, Progressable progress
        ) throws IOException {
            return create(path, overwrite, buffer, replication, block, progress);
        }

        private void put(Path path, byte[] data) throws IOException {
            try (OutputStream stream = super.create(path, true, 4096, (short) 1, 1 << 20, null)) {
                stream.write(data);
            }
            appeared(path);
        }

        @Override
        public boolean rename(Path from, Path to) throws IOException {
            step("rename", local(to));
            boolean done = super.rename(from, to);
            appeared(to);
            return done;
        }

        @Override
        public boolean delete(Path path, boolean recursive) throws IOException {
            step("delete", local(path));
            return super.delete(path, recursive);
        }

        @Override
        public FSDataInputStream open(Path path, int buffer) throws IOException {
            read("open", path);
            return super.open(path, buffer);
        }

        @Override
        public FileStatus getFileStatus(Path path) throws IOException {
            read("status", path);
            return plain(super.getFileStatus(path));
        }

        @Override
        public FileStatus[] listStatus(Path path) throws IOException, FileNotFoundException {
            read("list", path);
            FileStatus[] found = super.listStatus(path);
            boolean ofItself = found.length == 1 && local(found[0].getPath()).equals(local(path));
            return Arrays.stream(found).filter(one -> ofItself || isListed(one)).map(Raw::plain).toArray(FileStatus[]::new);
        }

        /** An object: it appears when its upload is complete. */
        private final class Upload extends OutputStream {
            private final Path path;
            private final ByteArrayOutputStream data = new ByteArrayOutputStream();
            private boolean isClosed = false;

            Upload(Path path) {
                this.path = path;
            }

            @Override
            public void write(int one) {
                data.write(one);
            }

            @Override
            public void write(byte[] some, int from, int length) {
                data.write(some, from, length);
            }

            @Override
            public void close() throws IOException {
                if (!isClosed) {
                    isClosed = true;
                    step("put", local(path));
                    put(path, data.toByteArray());
                }
            }
        }
    }

    /** A file of a disk, of which a part may be written when the process ends. */
    private static final class Closing extends OutputStream {
        private final Path path;
        private final FSDataOutputStream file;
        private boolean isClosed = false;

        Closing(Path path, FSDataOutputStream file) {
            this.path = path;
            this.file = file;
        }

        @Override
        public void write(int one) throws IOException {
            file.write(one);
        }

        @Override
        public void write(byte[] some, int from, int length) throws IOException {
            file.write(some, from, length);
        }

        @Override
        public void flush() throws IOException {
            file.flush();
        }

        @Override
        public void close() throws IOException {
            if (!isClosed) {
                isClosed = true;
                step("close", local(path));
                file.close();
            }
        }
    }

    /** To be used for the scheme `file`. */
    public static final class Disk extends LocalFileSystem {
        public Disk() {
            super(new Raw(false));
        }
    }

    /** To be used for a scheme of object stores; the bucket is `lab`, and a path is one of the local disk. */
    public static final class ObjectStore extends Raw {
        private static final URI ADDRESS = URI.create("s3a://lab");

        public ObjectStore() {
            super(true);
        }

        @Override
        public URI getUri() {
            return ADDRESS;
        }

        @Override
        public String getScheme() {
            return "s3a";
        }
    }
}
