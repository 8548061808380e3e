"""Cases of Kafka's client tests that do not run against the light broker, or do not pass there, with the reason of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

KIP_848 = "consumer protocol of KIP-848, not there yet"
TRANSACTIONS = "transactions, not there yet"
GROUP_CONFIGS = "configs of groups (KIP-848 and share groups), not there yet"
SEVERAL = "needs several brokers"
OBJECTS = "reads objects or metrics inside the broker, which is another process"
CONTROLLER = "needs a controller that is apart from the broker"
SHARE = "share groups, left out for good"
TELEMETRY = "client telemetry, left out for good"
POLICIES = "policies are Java classes, left out for good"
QUOTA_CALLBACKS = "quota callbacks are Java classes, left out for good"
JAVA_AUTHORIZER = "a principal builder is a Java class, left out for good"
FEATURES = "features of a quorum, which a standalone broker does not have"


@dataclass(frozen=True, slots=True)
class Excepted:
    """The cases of some classes that need something; both patterns match whole names."""

    classes: str
    cases: str
    reason: str


EXCEPTED = (
    Excepted("ShareConsumer.*", ".*", SHARE),
    Excepted("Transactions.*|AdminFenceProducersTest", ".*", TRANSACTIONS),
    Excepted("Producer(Integration|IdExpiration)Test", "testTransaction.*", TRANSACTIONS),
    Excepted("ClientTelemetryTest", "testClientInstanceId|testIntervalMsParser", TELEMETRY),
    Excepted("AdminClientWithPoliciesIntegrationTest|CreateTopicsRequestWithPolicyTest", ".*", POLICIES),
    Excepted("CustomQuotaCallbackTest", ".*", QUOTA_CALLBACKS),
    Excepted("GroupAuthorizerIntegrationTest", ".*", JAVA_AUTHORIZER),
    Excepted("MetadataVersionIntegrationTest|DescribeFeaturesTest", ".*", FEATURES),
    Excepted("DynamicGroupConfigIntegrationTest", ".*", GROUP_CONFIGS),
    Excepted(
        ".*", ".*(Async(Consumer|Assign|Close|Subscribe|Poll)|AsyncConsume|Re2J|WithGroupProtocolConsumer).*", KIP_848
    ),
    Excepted("SocketServerMemoryPoolTest|MetricsDuringTopicCreationDeletionTest", ".*", OBJECTS),
    Excepted("ConsumerIntegrationTest", "testSingleCoordinatorOwnershipAfterPartitionReassignment", OBJECTS),
    Excepted(
        "StaticBrokerConfigTest", "testTopicConfigs.*|testInternalConfigsDoNotReturnForDescribeConfigs", CONTROLLER
    ),
    Excepted("ConsumerBounceTest", "testClassic(CloseDuringRebalance|.*BrokerFailures)", SEVERAL),
    Excepted("ConsumerBounceTest", "testClassicClose", SEVERAL),
    Excepted("ProducerIntegrationTest", "testUniqueProducerIds", OBJECTS),
    Excepted("ProducerSendWhileDeletionTest", "testSendWithRecreatedTopic", OBJECTS),
    Excepted("ProducerSendWhileDeletionTest", "testSendWithTopic(ReassignmentIsMidWay|DeletionMidWay)", SEVERAL),
    Excepted("ProducerFailureHandlingTest", "testCannotSendToInternalTopic|testNotEnoughReplicas.*", OBJECTS),
    Excepted("DescribeAuthorizedOperationsTest", ".*", OBJECTS),
    Excepted("PlaintextConsumerTest", "testClassicConsumer(CloseOnBrokerShutdown|QuotaMetricsNotCreated.*)", OBJECTS),
    Excepted("ProducerIdExpirationTest", "testDynamicProducerIdExpirationMs", OBJECTS),
    Excepted("ConsumerIntegrationTest", "testRackAwareAssignment|testLeaderEpoch", SEVERAL),
    Excepted("ConsumerWithLegacyMessageFormatIntegrationTest", ".*Classic.*", SEVERAL),
    Excepted("RackAwareAutoTopicCreationTest|ClientRebootstrapTest|DeleteTopicTest", ".*", SEVERAL),
    Excepted("AutoTopicCreationTest", "testAutoCreateTopicWith(Explicit|Implicit|Mixed).*", SEVERAL),
    Excepted("DescribeProducersWithBrokerIdTest", "testDescribeProducers(FromFollower|WithInvalidBrokerId)", SEVERAL),
    Excepted("ListOffsetsIntegrationTest", "testThree.*", SEVERAL),
    Excepted(".*", ".*CoordinatorFailover", SEVERAL),
)


def reason_of(name: str, case: str) -> str | None:
    """Return why a case is excepted, if it is.

    >>> reason_of("PlaintextConsumerTest", "testAsyncConsumerSeek"), reason_of("PlaintextConsumerTest", "testClassicConsumerSeek")
    ('consumer protocol of KIP-848, not there yet', None)
    """
    return next(
        (
            exception.reason
            for exception in EXCEPTED
            if re.fullmatch(exception.classes, name) and re.fullmatch(exception.cases, case)
        ),
        None,
    )


def all_but_excepted(name: str) -> str:
    """Return the selection of the cases of a class that must pass (`lab.peers.client_tests`)."""
    left_out = [note.cases for note in EXCEPTED if re.fullmatch(note.classes, name)]
    return f"{name}#(?!(?:{'|'.join(left_out)})$).*"
