"""What tests/compose gives to `podman kube play` is what `overlays/local` says, pod by pod."""

from pathlib import Path

from tests.compose.kube_play import playable
from tests.harness.manifests import breaches, built, fits_schema, one


def test_pods_have_their_claims_and_config_maps_beside_them(tmp_path: Path) -> None:
    overlay = built("local")
    parts = playable(overlay)
    assert list(parts) == ["broker", "producer", "rejoin"]
    for manifests in parts.values():
        fits_schema(manifests, tmp_path)
        pod = manifests[-1]
        assert pod["kind"] == "Pod"
        assert breaches(pod) == []
        there = {m["metadata"]["name"] for m in manifests}
        volumes = pod["spec"].get("volumes", [])
        for volume in volumes:
            if "configMap" in volume:
                assert volume["configMap"]["name"] in there
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in there
        for container in pod["spec"]["containers"]:
            mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
            assert mounted <= {volume["name"] for volume in volumes}


def test_containers_are_as_kustomize_builds_them() -> None:
    overlay = built("local")
    pod = playable(overlay)["rejoin"][-1]
    template = one(overlay, "StatefulSet", "rejoin")["spec"]["template"]
    assert pod["metadata"]["name"] == "rejoin-0"
    assert pod["spec"]["containers"] == template["spec"]["containers"]
    assert pod["spec"]["securityContext"] == template["spec"]["securityContext"]
