import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Prints the topic configs of Kafka's LogConfig as one JSON document: name, type, default, bounds or allowed values, and the broker
 * setting of the default, in the order in which Kafka validates them. Also prints the valid version names of
 * message.format.version. tools/extract_topic_configs.py converts the document to Python.
 */
public final class TopicConfigs {
    private static Object field(Object owner, Class<?> declaring, String name) throws ReflectiveOperationException {
        Field field = declaring.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static Map<String, Object> rule(ConfigDef.Validator validator) throws ReflectiveOperationException {
        Map<String, Object> rule = new LinkedHashMap<>();
        if (validator == null) {
            rule.put("kind", "any");
        } else if (validator instanceof ConfigDef.Range) {
            rule.put("kind", "range");
            rule.put("least", field(validator, ConfigDef.Range.class, "min"));
            rule.put("most", field(validator, ConfigDef.Range.class, "max"));
        } else if (validator instanceof ConfigDef.ValidString) {
            rule.put("kind", "one_of");
            rule.put("values", field(validator, ConfigDef.ValidString.class, "validStrings"));
        } else if (validator instanceof ConfigDef.ValidList) {
            Object strings = field(validator, ConfigDef.ValidList.class, "validString");
            rule.put("kind", "each_one_of");
            rule.put("values", field(strings, ConfigDef.ValidString.class, "validStrings"));
        } else {
            rule.put("kind", validator.getClass().getName());
            rule.put("text", validator.toString());
        }
        return rule;
    }

    public static void main(String[] arguments) throws Exception {
        List<Map<String, Object>> configs = new ArrayList<>();
        for (ConfigDef.ConfigKey key : LogConfig.configKeys().values()) {
            Map<String, Object> config = new LinkedHashMap<>();
            config.put("name", key.name);
            config.put("type", key.type.name());
            config.put("default", ConfigDef.convertToString(key.defaultValue, key.type));
            config.put("rule", rule(key.validator));
            config.put("broker_name", ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.get(key.name));
            configs.add(config);
        }
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("configs", configs);
        Map<?, ?> versions = (Map<?, ?>) field(null, MetadataVersion.class, "IBP_VERSIONS");
        TreeSet<String> names = new TreeSet<>();
        versions.keySet().forEach(name -> names.add((String) name));
        document.put("versions", names);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        out.println(new ObjectMapper().writeValueAsString(document));
    }
}
