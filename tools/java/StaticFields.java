import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.config.ConfigDef;

/**
 * Prints static fields of Kafka's classes, each argument a class and a field, as one JSON document by argument.
 *
 * A ConfigDef is printed by name in the order in which Kafka validates: type, default, whether a value is required, bounds or allowed
 * values, whether it is internal, and documentation. A map is printed with its keys and values as text, a set
 * of names like a map of each name to itself. tools/kafka_definitions.py reads the document.
 */
public final class StaticFields {
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
            // The class of Kafka 4 has an error of its own for empty elements.
            rule.put("names_empty", Arrays.stream(ConfigDef.ValidList.class.getDeclaredFields())
                .anyMatch(one -> one.getName().equals("isEmptyAllowed")));
            rule.put("values", field(strings, ConfigDef.ValidString.class, "validStrings"));
        } else {
            rule.put("kind", validator.getClass().getName());
            rule.put("text", validator.toString());
        }
        return rule;
    }

    private static Map<String, Object> definitions(ConfigDef configs) throws ReflectiveOperationException {
        Map<String, Object> byName = new LinkedHashMap<>();
        for (ConfigDef.ConfigKey key : configs.configKeys().values()) {
            Map<String, Object> config = new LinkedHashMap<>();
            config.put("type", key.type.name());
            config.put("required", !key.hasDefault());
            config.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            config.put("rule", rule(key.validator));
            config.put("internal", key.internalConfig);
            config.put("documentation", key.documentation);
            byName.put(key.name, config);
        }
        return byName;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> document = new LinkedHashMap<>();
        for (String argument : arguments) {
            int dot = argument.lastIndexOf('.');
            Object value = field(null, Class.forName(argument.substring(0, dot)), argument.substring(dot + 1));
            if (value instanceof ConfigDef) {
                document.put(argument, definitions((ConfigDef) value));
            } else if (value instanceof Set) {
                Map<String, String> names = new LinkedHashMap<>();
                ((Set<?>) value).forEach(one -> names.put(one.toString(), one.toString()));
                document.put(argument, names);
            } else {
                Map<String, String> text = new LinkedHashMap<>();
                ((Map<?, ?>) value).forEach((key, one) -> text.put(key.toString(), one.toString()));
                document.put(argument, text);
            }
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        out.println(new ObjectMapper().writeValueAsString(document));
    }
}
