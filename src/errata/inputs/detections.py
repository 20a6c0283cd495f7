"""Detected boxes beside what is there, from files and without the detector: one row an object, or a detection.

`yolo val save_json=True` writes `predictions.json`, `save_txt=True save_conf=True` a folder of `.txt` files; what is
there is a folder of `.txt` labels or a COCO `.json`. A row of an object is bad where no detection of its class
overlaps it; a row of a detection where it overlaps no object of its class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core import Array, Evaluation, InputError, Source
from ..core.json_text import parse_json
from .decoding import IMAGE_SUFFIXES, open_image
from .features import encode_columns
from .files import damaged
from .media import Images

if TYPE_CHECKING:
    from PIL import Image

MARGIN = 0.25  # of a box that is shown around it
OF_EPOCHS = "metrics/"  # columns of a `results.csv`, which has one row an epoch


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of one image. corners: (b, 4) x1, y1, x2, y2 as shares of the image. classes: (b,). scores: (b,)."""

    corners: Array
    classes: Array
    scores: Array


NO_BOXES = Boxes(np.empty((0, 4)), np.empty(0, dtype=np.int64), np.empty(0))


def read_detections(
    predictions: str | Path,
    labels: str | Path,
    *,
    images: str | Path | None = None,
    class_names: Sequence[str] | None = None,
    rows: Literal["objects", "detections"] = "objects",
    overlap: float = 0.5,
    confidence: float = 0.25,
) -> Evaluation:
    """An Evaluation of a detector from the files that it and its data set have.

    predictions: `predictions.json`, or a folder of `.txt` files with class, box and confidence. labels: a folder of
    `.txt` files with class and box, or a COCO `.json`. images: their folder, for what is shown and, where the boxes
    of one file are in pixels and those of the other are not, for their size. class_names: in the order of the class
    numbers of `labels`. rows: "objects" asks which objects are missed, "detections" which detections are wrong.
    overlap: intersection over union from which a detection is of an object. confidence: detections below it are left
    out.
    """
    if rows not in ("objects", "detections"):
        raise InputError(f'`rows` must be "objects" or "detections"; got {rows!r}')
    there, sizes, known = _read_labels(Path(labels))
    detected = _read_predictions(Path(predictions), sizes, _Folder(images), confidence, there)
    unknown = sorted(set(detected) - set(there))
    if unknown and not set(detected) & set(there):
        raise InputError(
            f"none of the images of `{predictions}` ({unknown[0]}, …) is among those of `{labels}`; give the same split"
        )
    names = tuple(class_names) if class_names is not None else known
    return _evaluation(there, detected, names, rows, overlap, _Folder(images))


def _evaluation(
    there: Mapping[str, Boxes],
    detected: Mapping[str, Boxes],
    names: tuple[str, ...] | None,
    rows: str,
    overlap: float,
    images: _Folder,
) -> Evaluation:
    columns: dict[str, list[Any]] = {"class": [], "share of the image": [], "width / height": [], "x": [], "y": []}
    columns |= {"boxes in the image": [], "confidence": []}
    losses: list[float] = []
    ids: list[str] = []
    groups: list[str] = []
    corners: list[Array] = []
    for image in sorted(there):
        objects = there[image]
        found = detected.get(image, NO_BOXES)
        pairs = match(objects, found, overlap)
        own, other = (objects, found) if rows == "objects" else (found, objects)
        partner = pairs if rows == "objects" else _inverse(pairs, len(found.classes))
        for i, box in enumerate(own.corners):
            right = partner[i] >= 0 and other.classes[partner[i]] == own.classes[i]
            losses.append(float(not right))
            ids.append(f"{image} {i}")
            groups.append(image)
            corners.append(box)
            _describe(columns, own, i, names)
    if not losses:
        raise InputError(f"there are no {rows} in any image; check `labels`, `confidence` and the names of the files")
    if rows == "objects":
        del columns["confidence"]
    metadata = {name: np.array(values) for name, values in columns.items()}
    return Evaluation(
        losses=np.array(losses),
        ids=np.array(ids),
        groups=np.array(groups),
        metadata=metadata,
        media=images.crops(groups, np.array(corners)),
        representations={"features": encode_columns(metadata).matrix},
        sources={"features": Source(from_model=False)},
    )


def _describe(columns: dict[str, list[Any]], boxes: Boxes, i: int, names: tuple[str, ...] | None) -> None:
    x1, y1, x2, y2 = boxes.corners[i]
    number = int(boxes.classes[i])
    if names is not None and not 0 <= number < len(names):
        raise InputError(f"class {number} has no name: `class_names` has only {len(names)}")
    name = f"class {number}" if names is None else names[number]
    columns["class"].append(name)
    columns["share of the image"].append((x2 - x1) * (y2 - y1))
    columns["width / height"].append((x2 - x1) / max(y2 - y1, 1e-9))
    columns["x"].append((x1 + x2) / 2)
    columns["y"].append((y1 + y2) / 2)
    columns["boxes in the image"].append(len(boxes.classes))
    columns["confidence"].append(boxes.scores[i])


def match(objects: Boxes, found: Boxes, overlap: float) -> Array:
    """(o,) the detection of each object, -1 for none: pairs of one class first, then by how much they overlap."""
    pairs = np.full(len(objects.classes), -1)
    if not len(objects.classes) or not len(found.classes):
        return pairs
    shares = intersection_over_union(objects.corners, found.corners)
    same = objects.classes[:, None] == found.classes[None, :]
    order = np.argsort(-(shares + same).ravel(), kind="stable")
    taken: set[int] = set()
    for place in order:
        o, f = divmod(int(place), shares.shape[1])
        if shares[o, f] >= overlap and pairs[o] < 0 and f not in taken:
            pairs[o] = f
            taken.add(f)
    return pairs


def _inverse(pairs: Array, count: int) -> Array:
    """(f,) the object of each detection, -1 for none."""
    inverse = np.full(count, -1)
    inverse[pairs[pairs >= 0]] = np.flatnonzero(pairs >= 0)
    return inverse


def intersection_over_union(a: Array, b: Array) -> Array:
    """(len(a), len(b)) of boxes given by their corners."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    areas = [np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(axis=1) for boxes in (a, b)]
    ratio: Array = shared / np.maximum(areas[0][:, None] + areas[1][None, :] - shared, 1e-12)
    return ratio


def _read_labels(path: Path) -> tuple[dict[str, Boxes], dict[str, tuple[float, float]], tuple[str, ...] | None]:
    """Image -> what is there; image -> width and height where they are known; names of the classes."""
    if path.is_dir():
        return _read_folder(path, with_scores=False), {}, None
    value = _load(path)
    if not isinstance(value, Mapping) or not {"images", "annotations"} <= set(value):
        raise InputError(
            f"`{path}` is no COCO file: it needs `images` and `annotations`; give a folder of .txt labels instead"
        )
    categories = sorted(value.get("categories", ()), key=lambda category: category["id"])
    index = {category["id"]: i for i, category in enumerate(categories)}
    images = {image["id"]: image for image in value["images"]}
    sizes = {Path(image["file_name"]).stem: (image["width"], image["height"]) for image in images.values()}
    parts: dict[str, list[tuple[Any, ...]]] = {stem: [] for stem in sizes}
    for annotation in value["annotations"]:
        image = images[annotation["image_id"]]
        corners = _corners(annotation["bbox"], (image["width"], image["height"]))
        number = index.get(annotation["category_id"], annotation["category_id"])
        parts[Path(image["file_name"]).stem].append((number, 1.0, *corners))
    names = tuple(str(category.get("name", category["id"])) for category in categories)
    return {stem: _boxes(rows) for stem, rows in parts.items()}, sizes, names or None


def _read_predictions(
    path: Path, sizes: Mapping[str, tuple[float, float]], images: _Folder, confidence: float, there: Mapping[str, Boxes]
) -> dict[str, Boxes]:
    if path.is_dir():
        detected = _read_folder(path, with_scores=True)
    else:
        if path.suffix == ".csv":
            raise InputError(
                f"`{path.name}` has one row an epoch, not one a box; run `yolo val save_json=True` and give its .json"
            )
        detected = _read_detected(_load(path), path, sizes, images, there)
    return {stem: _above(boxes, confidence) for stem, boxes in detected.items()}


def _read_detected(
    value: Any, path: Path, sizes: Mapping[str, tuple[float, float]], images: _Folder, there: Mapping[str, Boxes]
) -> dict[str, Boxes]:
    """Boxes of a `predictions.json`, whose image is the stem of a file and whose classes may start at 1."""
    if not isinstance(value, list) or not all(isinstance(row, Mapping) and "bbox" in row for row in value):
        raise InputError(
            f"`{path}` must be a list of boxes, as `yolo val save_json=True` writes; got {type(value).__name__}"
        )
    stems = {stem.lstrip("0") or "0": stem for stem in there}  # 000139 is written as the number 139
    parts: dict[str, list[tuple[Any, ...]]] = {}
    for row in value:
        stem = Path(str(row.get("file_name", row["image_id"]))).stem
        stem = stem if stem in there else stems.get(str(row["image_id"]), stem)
        size = sizes.get(stem) or images.size(stem)
        parts.setdefault(stem, []).append((row["category_id"], row["score"], *_corners(row["bbox"], size)))
    detected = {stem: _boxes(rows) for stem, rows in parts.items()}
    shift = _first_class(detected, there)
    return {stem: Boxes(boxes.corners, boxes.classes - shift, boxes.scores) for stem, boxes in detected.items()}


def _first_class(detected: Mapping[str, Boxes], there: Mapping[str, Boxes]) -> int:
    """0 or 1, what the first class is called: the number under which more overlapping boxes have one class."""
    agree = [0, 0]
    for stem, boxes in detected.items():
        objects = there.get(stem, NO_BOXES)
        if len(objects.classes) and len(boxes.classes):
            near = intersection_over_union(objects.corners, boxes.corners) >= 0.5
            for shift in (0, 1):
                same = objects.classes[:, None] == boxes.classes[None, :] - shift
                agree[shift] += int((near & same).sum())
    return int(agree[1] > agree[0])


def _above(boxes: Boxes, confidence: float) -> Boxes:
    sure = boxes.scores >= confidence
    return Boxes(boxes.corners[sure], boxes.classes[sure], boxes.scores[sure])


def _read_folder(folder: Path, *, with_scores: bool) -> dict[str, Boxes]:
    """`class x y width height [confidence]` of each line, as shares of the image, of every .txt file."""
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise InputError(f"`{folder}` has no .txt files with boxes; give the folder `labels` of the split")
    columns = 6 if with_scores else 5
    return {path.stem: _read_text(path, columns) for path in files}


def _read_text(path: Path, columns: int) -> Boxes:
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        parts = line.split()
        if not parts:
            continue
        try:
            values = [float(part) for part in parts]
        except ValueError as error:
            raise InputError(f"line {number} of `{path}` is not `class x y width height`; got {line!r}") from error
        if len(values) < columns:
            cure = "save it with save_conf=True" if columns == 6 else "write class, x, y, width and height"
            raise InputError(f"line {number} of `{path}` has {len(values)} numbers where {columns} are needed; {cure}")
        kind, x, y, width, height = values[:5]
        score = values[5] if columns == 6 else 1.0
        rows.append((int(kind), score, x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    return _boxes(rows)


def _boxes(rows: Sequence[Sequence[Any]]) -> Boxes:
    if not rows:
        return NO_BOXES
    table = np.array(rows, dtype=np.float64)
    return Boxes(table[:, 2:], table[:, 0].astype(np.int64), table[:, 1])


def _corners(box: Sequence[float], size: tuple[float, float]) -> tuple[float, float, float, float]:
    """Shares of the image from x, y, width and height in pixels."""
    x, y, width, height = box
    return x / size[0], y / size[1], (x + width) / size[0], (y + height) / size[1]


def _load(path: Path) -> Any:
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"the file `{path}` does not exist; check the path") from error
    except (ValueError, OSError) as error:
        raise damaged(path, error) from error


class _Folder:
    """A folder of images, by the stems of their names."""

    def __init__(self, path: str | Path | None):
        self._path = path
        self._files: dict[str, Path] = {}
        if path is not None:
            files = [file for file in Path(path).rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES]
            if not files:
                raise InputError(f"the folder `{path}` has no images; give the folder `images` of the split")
            self._files = {file.stem: file for file in files}

    def size(self, stem: str) -> tuple[float, float]:
        """Width and height in pixels."""
        if stem not in self._files:
            raise InputError(
                f"boxes of the image {stem} are in pixels and its size is not known; pass `images`, the "
                "folder of the images"
            )
        try:
            with open_image(self._files[stem]) as image:
                return image.size
        except Exception as error:  # on broken bytes Pillow's decoders raise almost anything
            raise InputError(f"`{self._files[stem]}` is no image that can be read ({error}); convert it") from error

    def crops(self, stems: Sequence[str], corners: Array) -> BoxCrops | None:
        """What each row shows; None without images."""
        if not self._files:
            return None
        return BoxCrops([(self._files.get(stem), box) for stem, box in zip(stems, corners, strict=True)])


class BoxCrops(Images):
    """The boxes of images, with some of what is around them."""

    def rows(self, index: Array) -> BoxCrops:
        """Some of the rows, in the order of `index`."""
        return BoxCrops(self._items, self._index[np.asarray(index)])

    def _open(self, item: int, px: int) -> Image.Image | None:
        path, (x1, y1, x2, y2) = self._items[item]
        if path is None:
            return None
        wide = MARGIN * (x2 - x1)
        high = MARGIN * (y2 - y1)
        try:
            with open_image(path) as image:
                width, height = image.size
                edges = (
                    max(0, int((x1 - wide) * width)),
                    max(0, int((y1 - high) * height)),
                    min(width, int((x2 + wide) * width) + 1),
                    min(height, int((y2 + high) * height) + 1),
                )
                if edges[0] >= edges[2] or edges[1] >= edges[3]:
                    return None
                return image.crop(edges)
        except Exception:  # on broken bytes Pillow's decoders raise almost anything
            return None
