"""Entry points of `steward`, `python -m steward` and `kubectl steward`."""

from steward.loading import without_collections


def main() -> None:
    """Run `steward`."""
    with without_collections():
        from steward.main import app  # noqa: PLC0415 - see the line above
    app()


def kubectl_main() -> None:
    """Run `kubectl steward`."""
    with without_collections():
        from steward.main import kubectl_app  # noqa: PLC0415 - see the line above
    kubectl_app()


if __name__ == "__main__":
    main()
