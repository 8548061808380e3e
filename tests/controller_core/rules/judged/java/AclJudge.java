import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Judges questions by Kafka's two authorizers. One line of JSON in: {"acls": [[type, name, pattern, principal, host, operation,
 * permission]...], "super": [principal...], "everyone": bool, "questions": [[principal, host, operation, type, name]...],
 * "filters": [[type, name, pattern, principal, host, operation, permission]...]}; numbers are those of the wire.
 * One line out: {"zookeeper": [bool...], "standard": [bool...], "any": [bool...], "found": [[index of an ACL...]...]}.
 */
public final class AclJudge {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(mapper.writeValueAsString(judge(mapper.readTree(line))));
    }

    private static Map<String, Object> judge(JsonNode one) throws Exception {
        List<AclBinding> acls = new ArrayList<>();
        one.get("acls").forEach(acl -> acls.add(new AclBinding(
            new ResourcePattern(type(acl.get(0)), acl.get(1).asText(), pattern(acl.get(2))),
            new AccessControlEntry(acl.get(3).asText(), acl.get(4).asText(), operation(acl.get(5)), permission(acl.get(6))))));
        AclAuthorizer zookeeper = zookeeper(acls, one);
        StandardAuthorizer standard = standard(acls, one);
        List<Object> first = new ArrayList<>(), second = new ArrayList<>(), any = new ArrayList<>(), found = new ArrayList<>();
        for (JsonNode question : one.get("questions")) {
            AuthorizableRequestContext context = context(question.get(0).asText(), question.get(1).asText());
            ResourcePattern resource = new ResourcePattern(type(question.get(3)), question.get(4).asText(), PatternType.LITERAL);
            List<Action> actions = List.of(new Action(operation(question.get(2)), resource, 1, false, false));
            first.add(zookeeper.authorize(context, actions).get(0) == AuthorizationResult.ALLOWED);
            second.add(standard.authorize(context, actions).get(0) == AuthorizationResult.ALLOWED);
            any.add(zookeeper.authorizeByResourceType(context, operation(question.get(2)), type(question.get(3)))
                == AuthorizationResult.ALLOWED);
        }
        for (JsonNode filter : one.get("filters")) {
            Set<Integer> indexes = new TreeSet<>();
            AclBindingFilter asked = new AclBindingFilter(
                new ResourcePatternFilter(type(filter.get(0)), text(filter.get(1)), pattern(filter.get(2))),
                new AccessControlEntryFilter(text(filter.get(3)), text(filter.get(4)), operation(filter.get(5)), permission(filter.get(6))));
            zookeeper.acls(asked).forEach(binding -> indexes.add(acls.indexOf(binding)));
            found.add(indexes);
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("zookeeper", first);
        answer.put("standard", second);
        answer.put("any", any);
        answer.put("found", found);
        return answer;
    }

    /** The authorizer of ZooKeeper mode, filled without ZooKeeper. */
    private static AclAuthorizer zookeeper(List<AclBinding> acls, JsonNode one) throws Exception {
        AclAuthorizer authorizer = new AclAuthorizer();
        Set<KafkaPrincipal> superUsers = new HashSet<>();
        one.get("super").forEach(name -> superUsers.add(SecurityUtils.parseKafkaPrincipal(name.asText())));
        set(authorizer, "superUsers_$eq", CollectionConverters.asScala(superUsers).toSet());
        set(authorizer, "shouldAllowEveryoneIfNoAclIsFound_$eq", one.get("everyone").asBoolean());
        Map<ResourcePattern, Set<AclEntry>> entries = new HashMap<>();
        for (AclBinding acl : acls)
            entries.computeIfAbsent(acl.pattern(), ignored -> new HashSet<>()).add(new AclEntry(acl.entry()));
        entries.forEach((resource, all) -> authorizer.updateCache(
            resource, new AclAuthorizer.VersionedAcls(CollectionConverters.asScala(all).toSet(), 0)));
        return authorizer;
    }

    private static void set(AclAuthorizer authorizer, String setter, Object value) throws Exception {
        for (Method method : AclAuthorizer.class.getDeclaredMethods()) {
            if (method.getName().equals(setter)) {
                method.setAccessible(true);
                method.invoke(authorizer, value);
                return;
            }
        }
        throw new NoSuchMethodException(setter);
    }

    private static StandardAuthorizer standard(List<AclBinding> acls, JsonNode one) {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        List<String> superUsers = new ArrayList<>();
        one.get("super").forEach(name -> superUsers.add(name.asText()));
        authorizer.configure(Map.of(
            "super.users", String.join(";", superUsers), "allow.everyone.if.no.acl.found", one.get("everyone").asText(), "node.id", "1"));
        authorizer.completeInitialLoad();
        Set<AclBinding> each = new HashSet<>(acls);
        each.forEach(acl -> authorizer.addAcl(Uuid.randomUuid(), StandardAcl.fromAclBinding(acl)));
        return authorizer;
    }

    private static AuthorizableRequestContext context(String principal, String host) throws Exception {
        KafkaPrincipal who = SecurityUtils.parseKafkaPrincipal(principal);
        InetAddress address = InetAddress.getByName(host);
        InvocationHandler answers = (proxy, method, arguments) -> switch (method.getName()) {
            case "principal" -> who;
            case "clientAddress" -> address;
            default -> null;
        };
        return (AuthorizableRequestContext) Proxy.newProxyInstance(
            AclJudge.class.getClassLoader(), new Class<?>[] {AuthorizableRequestContext.class}, answers);
    }

    private static String text(JsonNode value) {
        return value.isNull() ? null : value.asText();
    }

    private static ResourceType type(JsonNode code) {
        return ResourceType.fromCode((byte) code.asInt());
    }

    private static PatternType pattern(JsonNode code) {
        return PatternType.fromCode((byte) code.asInt());
    }

    private static AclOperation operation(JsonNode code) {
        return AclOperation.fromCode((byte) code.asInt());
    }

    private static AclPermissionType permission(JsonNode code) {
        return AclPermissionType.fromCode((byte) code.asInt());
    }
}
