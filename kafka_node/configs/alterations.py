"""Changes of a resource's configs, as AlterConfigs and IncrementalAlterConfigs request them: values after the operations of a request.

Whether the values are valid is judged afterwards (`topic_configs`, `setting_rules`). Source: ConfigAdminManager, ConfigurationControlManager.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum

from kafka_node.outcomes import duplicates
from kafka_wire import Body, ErrorCode, Failure

Configs = Mapping[str, str]


class AlterOperation(IntEnum):
    """Operations of IncrementalAlterConfigs (AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def resource_key(resource: Body) -> str:
    """Return what identifies a resource of a request."""
    return f"{resource['resource_type']}:{resource['resource_name']}"


def altered(
    current: Configs, resource: Body, defaults: Configs, is_list: Callable[[str], bool], *, incremental: bool
) -> dict[str, str] | Failure:
    """Return a resource's configs after a request: the current ones changed by its operations, or all replaced by its values.

    `defaults` has the values to which elements are appended where a config is not set; `is_list` returns whether a config is a list.
    """
    if again := duplicates(config["name"] for config in resource["configs"]):
        return Failure(ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {', '.join(sorted(again))}")
    configs = dict(current) if incremental else {}
    for config in resource["configs"]:
        name, value = config["name"], config["value"]
        operation = config["config_operation"] if incremental else AlterOperation.SET
        if operation == AlterOperation.DELETE:
            configs.pop(name, None)
            continue
        if value is None:
            return Failure(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
        if operation == AlterOperation.SET:
            configs[name] = value
        elif operation not in {AlterOperation.APPEND, AlterOperation.SUBTRACT}:
            return Failure(ErrorCode.INVALID_REQUEST, f"Unknown operation type {operation}")
        elif not is_list(name):
            message = f"Can't {AlterOperation(operation).name} to key {name} because its type is not LIST."
            return Failure(ErrorCode.INVALID_CONFIG, message)
        else:
            configs[name] = _list_value(configs.get(name, defaults.get(name, "")), value, AlterOperation(operation))
    return configs


def _list_value(current: str, given: str, operation: AlterOperation) -> str:
    """Append elements to a list, each once, or remove them from it."""
    had = [word for word in current.split(",") if word]
    elements = [element for element in given.split(",") if element]
    if operation is AlterOperation.APPEND:
        return ",".join([*had, *(element for element in elements if element not in had)])
    return ",".join(element for element in had if element not in elements)
