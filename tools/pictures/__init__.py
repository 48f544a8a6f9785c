"""The drawings of the documentation, as SVG for light and for dark pages."""

from collections.abc import Callable

from tools.pictures import flows, timelines
from tools.pictures.drawing import Drawing

PICTURES: dict[str, Callable[[], Drawing]] = {
    "overview": flows.overview,
    "epoch": flows.epoch,
    "pod": flows.pod,
    "join-regular": timelines.regular,
    "join-interval": timelines.interval,
    "join-temporal": timelines.temporal,
    "join-latest": timelines.latest,
}
