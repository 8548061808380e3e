"""Files of a release: chart, manifest of the operator, package, bill of materials, image definitions and checksums."""
