import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.AbstractKafkaConfig;

/**
 * Prints the settings of Kafka's nodes as one JSON document, sorted by name: name, type, default, bounds or allowed words.
 * tools/extract_broker_settings.py converts the document to Python.
 */
public final class BrokerSettings {
    private static Object field(Object owner, Class<?> declaring, String name) throws ReflectiveOperationException {
        Field field = declaring.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static Map<String, Object> rule(ConfigDef.Validator validator) throws ReflectiveOperationException {
        Map<String, Object> rule = new LinkedHashMap<>();
        if (validator instanceof ConfigDef.Range) {
            rule.put("least", field(validator, ConfigDef.Range.class, "min"));
            rule.put("most", field(validator, ConfigDef.Range.class, "max"));
        } else if (validator instanceof ConfigDef.ValidString) {
            rule.put("words", field(validator, ConfigDef.ValidString.class, "validStrings"));
        } else if (validator instanceof ConfigDef.ValidList) {
            Object strings = field(validator, ConfigDef.ValidList.class, "validString");
            rule.put("words", field(strings, ConfigDef.ValidString.class, "validStrings"));
        }
        return rule;
    }

    public static void main(String[] arguments) throws Exception {
        List<Map<String, Object>> settings = new ArrayList<>();
        for (ConfigDef.ConfigKey key : new TreeMap<>(AbstractKafkaConfig.CONFIG_DEF.configKeys()).values()) {
            Map<String, Object> setting = new LinkedHashMap<>();
            setting.put("name", key.name);
            setting.put("type", key.type.name());
            setting.put("required", !key.hasDefault());
            setting.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            setting.put("rule", rule(key.validator));
            settings.add(setting);
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        out.println(new ObjectMapper().writeValueAsString(settings));
    }
}
