import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import kafka.server.KafkaConfig;
import kafka.tools.StorageTool;

import org.apache.kafka.common.config.ConfigDef;

/**
 * Answers questions of tests, one JSON document a line: {"settings": {NAME: VALUE}} is given to Kafka's KafkaConfig,
 * {"arguments": [...]} to kafka-storage, and {"defaults": true} asks for all settings with their defaults. An answer has "error" (null or the exception's text) and "output".
 */
public final class StorageJudge {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static Map<String, Object> answer(JsonNode question) {
        Map<String, Object> answer = new LinkedHashMap<>();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream output = new PrintStream(bytes, true, StandardCharsets.UTF_8);
        answer.put("error", null);
        try {
            if (question.has("settings")) {
                KafkaConfig config = new KafkaConfig(JSON.convertValue(question.get("settings"), Map.class), false);
                config.effectiveAdvertisedControllerListeners().foreach(each -> {
                    output.println(each.listener() + " " + each.securityProtocol() + " " + each.host() + " " + each.port());
                    return null;
                });
                output.println(config.metadataLogDir());
            } else if (question.has("defaults")) {
                for (ConfigDef.ConfigKey key : new TreeMap<>(KafkaConfig.configDef().configKeys()).values()) {
                    String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
                    output.println(key.name + " " + key.hasDefault() + " " + value);
                }
            } else {
                int code = StorageTool.execute(JSON.convertValue(question.get("arguments"), String[].class), output);
                answer.put("error", code == 0 ? null : "exit code " + code);
            }
        } catch (Throwable failure) {
            answer.put("error", String.valueOf(failure.getMessage()));
        }
        answer.put("output", bytes.toString(StandardCharsets.UTF_8));
        return answer;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }
}
