"""Cases of operations of vision: sampling, pooling of regions, boxes."""

import numpy as np
import paddle
import paddle.vision.ops as V


def boxes_of(t, count, size=10.0, dtype="float32", least=0.1):
    corner = t.rng.uniform(0, size * 0.7, (count, 2))
    extent = t.rng.uniform(size * least, size * 0.4, (count, 2))
    return np.concatenate([corner, corner + extent], 1).astype(dtype)



def cases_sampling(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    def grid(*shape, dtype="float64"):
        return t.uniform(-1.3, 1.3, *shape, dtype=dtype)

    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (True, False):
                args = {"mode": mode, "padding_mode": padding, "align_corners": corners}
                t.add("grid_sample", {"x": x(1, 2, 3, 4), "grid": grid(1, 2, 2, 2), **args}, grad=mode == "bilinear")
    for padding in ("zeros", "border", "reflection"):
        t.add("grid_sample", {"x": x(1, 2, 2, 3, 3), "grid": grid(1, 1, 2, 3, 3), "padding_mode": padding})
    t.add("grid_sample", {"x": t.normal(2, 3, 6, 7), "grid": grid(2, 5, 4, 2, dtype="float32")})
    t.add("grid_sample", {"x": x(0, 2, 4, 5), "grid": x(0, 3, 2, 2)}, outputs=[np.zeros((0, 2, 3, 2))])
    t.add("grid_sample", {"x": x(1, 2, 4, 5), "grid": x(1, 0, 2, 2)}, outputs=[np.zeros((1, 2, 0, 2))])
    t.reject("grid_sample", {"x": x(1, 2, 3, 4), "grid": grid(1, 2, 2, 3)})
    t.reject("grid_sample", {"x": x(1, 2, 3, 4), "grid": grid(3, 2, 2, 2)})
    t.reject("grid_sample", {"x": x(1, 2, 3, 4), "grid": grid(1, 2, 2, 2), "mode": "linear"})
    for stride, padding, dilation, groups, deformable, masked in ((1, 0, 1, 1, 1, False), (2, 1, 1, 1, 1, True), (1, [1, 0], 2, 2, 1, True),
                                                                  (1, 1, 1, 2, 2, True), ([2, 1], 1, 1, 1, 4, False)):
        size = [(s + 2 * p - (d * (k - 1) + 1)) // st + 1 for s, k, p, d, st in zip(
            (6, 5), (3, 2), (padding, padding) if isinstance(padding, int) else padding, (dilation,) * 2,
            (stride, stride) if isinstance(stride, int) else stride)]
        args = {"x": x(1, 4, 6, 5), "offset": x(1, deformable * 12, *size), "weight": x(4, 4 // groups, 3, 2), "bias": x(4),
                "stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "deformable_groups": deformable}
        if masked:
            args["mask"] = x(1, deformable * 6, *size)
        t.add("deform_conv2d", args)
    t.reject("deform_conv2d", {"x": x(1, 4, 6, 5), "offset": x(1, 11, 4, 4), "weight": x(4, 4, 3, 2)})
    t.reject("deform_conv2d", {"x": x(1, 4, 6, 5), "offset": x(1, 12, 4, 4), "weight": x(4, 3, 3, 2)})
    for layout in ("NCHW", "NHWC"):
        value, scale, bias = x(2, 3, 4, 3), x(3), x(3)
        t.add("affine_channel", {"x": value, "scale": scale, "bias": bias, "data_layout": layout},
              function=lambda x, scale, bias, data_layout: paddle._C_ops.affine_channel(x, scale, bias, data_layout))
    t.reject("affine_channel", {"x": x(2, 3, 4, 5), "scale": x(4), "bias": x(3)})


def cases_fractional_pool(t):
    for rank, shape in ((2, (1, 2, 7, 6)), (3, (1, 2, 5, 6, 4))):
        op = f"fractional_max_pool{rank}d"
        for size, kernel, u in ((3, None, 0.3), ([3, 2, 2][:rank], None, 0.7), ([3, None, 2][:rank], 2, 0.5), (2, [2, 3, 2][:rank], 0.9)):
            x = t.rng.permutation(np.arange(np.prod(shape)) / 8.0).reshape(shape)
            for mask in (False, True):
                t.add(op, {"x": x, "output_size": size, "kernel_size": kernel, "random_u": u, "return_mask": mask})
        t.reject(op, {"x": t.normal(*shape), "output_size": 9, "random_u": 0.5})
        t.reject(op, {"x": t.normal(*shape), "output_size": 2, "random_u": 1.5})
        t.reject(op, {"x": t.normal(2, 3), "output_size": 2, "random_u": 0.5})


def cases_roi(t):
    def x(*shape):
        return t.normal(*shape, dtype="float64")

    def boxes(count):
        # PaddlePaddle's gradient is wrong for sides under 1, so all are above 2.
        return boxes_of(t, count, dtype="float64", least=0.25)

    number = np.array([2, 3], np.int32)
    for aligned in (True, False):
        for ratio in (-1, 2):
            for scale in (1.0, 0.5):
                t.add("roi_align", {"x": x(2, 2, 6, 7), "boxes": boxes(5), "boxes_num": number, "output_size": [3, 2], "spatial_scale": scale,
                                    "sampling_ratio": ratio, "aligned": aligned}, frozen=("boxes",))
    t.add("roi_align", {"x": t.normal(2, 3, 8, 9), "boxes": boxes_of(t, 5), "boxes_num": number, "output_size": 2}, frozen=("boxes",))
    outside = np.array([[-3, -2, 4, 5], [6, 6, 14, 12], [20, 20, 30, 30]], np.float64)
    t.add("roi_align", {"x": x(1, 2, 6, 7), "boxes": outside, "boxes_num": np.array([3], np.int32), "output_size": 2}, frozen=("boxes",))
    t.add("roi_align", {"x": x(2, 2, 6, 7), "boxes": np.zeros((0, 4)), "boxes_num": np.array([0, 0], np.int32), "output_size": 2},
          outputs=[np.zeros((0, 2, 2, 2))])
    for scale in (1.0, 0.5):
        t.add("roi_pool", {"x": x(2, 2, 6, 7), "boxes": boxes(5), "boxes_num": number, "output_size": [3, 2], "spatial_scale": scale}, frozen=("boxes",))
        t.add("psroi_pool", {"x": x(2, 12, 6, 7), "boxes": boxes(5), "boxes_num": number, "output_size": [3, 2], "spatial_scale": scale},
              frozen=("boxes",))
    t.add("roi_pool", {"x": x(1, 2, 6, 7), "boxes": outside, "boxes_num": np.array([3], np.int32), "output_size": 2}, frozen=("boxes",))
    t.reject("roi_align", {"x": x(2, 2, 6, 7), "boxes": boxes(5), "boxes_num": np.array([2, 2], np.int32), "output_size": 2})
    t.reject("roi_align", {"x": x(2, 2, 6, 7), "boxes": boxes(5), "boxes_num": np.array([5], np.int32), "output_size": 2})
    t.reject("roi_align", {"x": x(2, 2, 6, 7), "boxes": boxes(5), "boxes_num": number, "output_size": 0})
    t.reject("roi_pool", {"x": x(2, 3, 8), "boxes": boxes(5), "boxes_num": number, "output_size": 2})
    t.reject("psroi_pool", {"x": x(2, 11, 6, 7), "boxes": boxes(5), "boxes_num": number, "output_size": [3, 2]})
    t.reject("roi_align", {"x": x(2, 2, 6, 7), "boxes": np.full((5, 4), np.nan), "boxes_num": number, "output_size": 2})
    grad, images = x(5, 2, 3, 2), np.zeros(5, np.int64)
    for changes in ({"boxes": np.zeros(())}, {"images": np.zeros((2, 0), np.int64)}, {"images": images[:4]}, {"input_shape": [2, 3, 6, 7]}):
        t.reject("roi_align_grad", {"grad": grad, "boxes": boxes(5), "images": images, "input_shape": [2, 2, 6, 7], **changes})
        t.reject("psroi_pool_grad", {"grad": grad, "boxes": boxes(5), "images": images, "input_shape": [2, 12, 6, 7], **changes})


def cases_boxes(t):
    def boxes(count):
        return boxes_of(t, count)

    def scores(*shape):
        return t.rng.permutation(np.linspace(0.02, 0.98, int(np.prod(shape)))).reshape(shape).astype(np.float32)

    for threshold in (0.1, 0.3, 0.7):
        t.add("nms", {"boxes": boxes(40), "iou_threshold": threshold})
        t.add("nms", {"boxes": boxes(40), "iou_threshold": threshold, "scores": scores(40)})
    for top in (None, 5, 40):
        t.add("nms", {"boxes": boxes(40), "iou_threshold": 0.2, "scores": scores(40), "category_idxs": t.integers(0, 4, 40),
                      "categories": [0, 1, 2, 3], "top_k": top})
    t.add("nms", {"boxes": boxes(40), "iou_threshold": 0.2, "scores": scores(40), "category_idxs": t.integers(0, 4, 40), "categories": [0, 2]})
    t.add("nms", {"boxes": boxes(40).astype(np.float64), "iou_threshold": 0.3})
    t.reject("nms", {"boxes": boxes(4)[:, :3]})
    t.reject("nms", {"boxes": boxes(4), "scores": scores(3)})
    t.reject("nms", {"boxes": boxes(4), "scores": scores(4), "category_idxs": t.integers(0, 2, 4)})
    for gaussian in (False, True):
        for normalized in (False, True):
            t.add("matrix_nms", {"bboxes": np.stack([boxes(20), boxes(20)]), "scores": scores(2, 3, 20), "score_threshold": 0.1, "post_threshold": 0.05,
                                 "nms_top_k": 15, "keep_top_k": 10, "use_gaussian": gaussian, "normalized": normalized, "return_index": True},
                  function=lambda **a: (lambda out, number, index: (out, number, index))(*V.matrix_nms(**a)))
    t.add("matrix_nms", {"bboxes": np.stack([boxes(20)]), "scores": scores(1, 3, 20), "score_threshold": 0.1, "post_threshold": 0.0, "nms_top_k": -1,
                         "keep_top_k": -1, "background_label": -1, "return_rois_num": False})
    for keep, label, eta in ((10, 0, 1.0), (-1, -1, 1.0), (7, 1, 0.9)):
        args = {"score_threshold": 0.1, "nms_top_k": 15, "keep_top_k": keep, "nms_threshold": 0.6, "normalized": True, "nms_eta": eta,
                "background_label": label}
        t.add("multiclass_nms3", {"bboxes": np.stack([boxes(20), boxes(20)]), "scores": scores(2, 3, 20), **args},
              function=lambda bboxes, scores, **a: paddle._C_ops.multiclass_nms3(bboxes, scores, None, *a.values()))
    t.reject("matrix_nms", {"bboxes": boxes(20), "scores": scores(1, 3, 20), "score_threshold": 0.1, "post_threshold": 0.0, "nms_top_k": 5, "keep_top_k": 5})
    for clip, scale, aware in ((True, 1.0, False), (False, 1.2, False), (True, 1.0, True)):
        t.add("yolo_box", {"x": t.normal(2, 3 * (7 + aware), 3, 4), "img_size": np.array([[60, 80], [50, 40]], np.int32),
                           "anchors": [10, 13, 16, 30, 33, 23], "class_num": 2, "conf_thresh": 0.4, "downsample_ratio": 16, "clip_bbox": clip,
                           "scale_x_y": scale, "iou_aware": aware, "iou_aware_factor": 0.3}, grad=False, rtol=1e-4, atol=1e-5)
    t.reject("yolo_box", {"x": t.normal(2, 20, 3, 4), "img_size": np.array([[60, 80], [50, 40]], np.int32), "anchors": [10, 13, 16, 30, 33, 23],
                          "class_num": 2, "conf_thresh": 0.4, "downsample_ratio": 16})
    truth = np.concatenate([t.rng.uniform(0.1, 0.9, (2, 3, 2)), t.rng.uniform(0.1, 0.6, (2, 3, 2))], 2)
    truth[1, 2] = 0
    for smooth, scored, scale in ((True, False, 1.0), (False, True, 1.2)):
        args = {"x": t.normal(2, 14, 4, 4, dtype="float64"), "gt_box": truth, "gt_label": t.integers(0, 2, 2, 3, dtype="int32"),
                "anchors": [10, 13, 16, 30, 33, 23], "anchor_mask": [0, 2], "class_num": 2, "ignore_thresh": 0.5, "downsample_ratio": 16,
                "use_label_smooth": smooth, "scale_x_y": scale}
        if scored:
            args["gt_score"] = t.rng.uniform(0.3, 1, (2, 3))
        t.add("yolo_loss", args, frozen=("gt_box", "gt_score"))
    for order, flip, clip, sizes in ((False, True, False, [4.0]), (True, False, True, [4.0, 6.0])):
        t.add("prior_box", {"input": np.zeros((1, 2, 3, 4), np.float32), "image": np.zeros((1, 3, 24, 30), np.float32), "min_sizes": sizes, "max_sizes": [s + 3.0 for s in sizes],
                            "aspect_ratios": [1.0, 2.0], "flip": flip, "clip": clip, "min_max_aspect_ratios_order": order}, grad=False)
    t.add("prior_box", {"input": np.zeros((1, 2, 3, 4), np.float32), "image": np.zeros((1, 3, 24, 30), np.float32), "min_sizes": [5.0], "steps": [6.0, 7.0], "offset": 0.3}, grad=False)
    prior, target = boxes_of(t, 4, dtype="float64"), boxes_of(t, 3, dtype="float64")
    variance = t.rng.uniform(0.1, 0.3, (4, 4))
    for normalized in (True, False):
        t.add("box_coder", {"prior_box": prior, "prior_box_var": variance, "target_box": target, "box_normalized": normalized}, grad=False)
        t.add("box_coder", {"prior_box": prior, "prior_box_var": [0.1, 0.1, 0.2, 0.2], "target_box": target, "box_normalized": normalized}, grad=False)
        for axis, shape in ((0, (3, 4, 4)), (1, (4, 3, 4))):
            t.add("box_coder", {"prior_box": prior, "prior_box_var": variance, "target_box": t.normal(*shape, dtype="float64"),
                                "code_type": "decode_center_size", "box_normalized": normalized, "axis": axis}, grad=False)
    t.reject("box_coder", {"prior_box": prior, "prior_box_var": variance, "target_box": t.normal(3, 5, 4), "code_type": "decode_center_size"})
    anchors = np.stack([boxes_of(t, 3, 20.0) for _ in range(12)]).reshape(3, 4, 3, 4)
    for offset, top, count in ((False, 6000, 1000), (True, 20, 5)):
        t.add("generate_proposals", {"scores": scores(2, 3, 3, 4), "bbox_deltas": t.normal(2, 12, 3, 4, scale=0.3),
                                     "img_size": np.array([[20, 24], [18, 22]], np.float32), "anchors": anchors, "variances": np.ones((3, 4, 3, 4), np.float32),
                                     "pre_nms_top_n": top, "post_nms_top_n": count, "nms_thresh": 0.4, "pixel_offset": offset, "return_rois_num": True},
              grad=False)
    rois = boxes_of(t, 12, 400.0)
    t.add("distribute_fpn_proposals", {"fpn_rois": rois, "min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 100},
          grad=False, function=lambda **a: V.distribute_fpn_proposals(**a, rois_num=paddle.to_tensor(np.array([12], np.int32)))[:2])
    t.add("distribute_fpn_proposals", {"fpn_rois": rois, "min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 100, "pixel_offset": True,
                                       "rois_num": np.array([5, 7], np.int32)}, grad=False)
    t.reject("distribute_fpn_proposals", {"fpn_rois": rois, "min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 100,
                                          "rois_num": np.array([5, 6], np.int32)})
    t.reject("distribute_fpn_proposals", {"fpn_rois": rois, "min_level": 5, "max_level": 2, "refer_level": 4, "refer_scale": 100})


def cases_files(t):
    from PIL import Image

    folder = "tests/data/formats/"
    for name in ("grey", "rgb"):
        content = np.fromfile(folder + name + ".jpg", np.uint8)
        t.add("read_file", {"filename": folder + name + ".jpg"}, outputs=[content])
        for mode in ("unchanged", "gray", "rgb"):
            image = Image.open(folder + name + ".jpg")
            if mode == "gray":
                image.draft("L", image.size)  # brightness as stored, as libjpeg returns it
            elif mode == "rgb":
                image = image.convert("RGB")
            pixels = np.asarray(image)
            pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
            t.add("decode_jpeg", {"x": content, "mode": mode}, outputs=[pixels])
    t.reject("read_file", {"filename": folder + "missing.jpg"})
    t.reject("decode_jpeg", {"x": np.arange(10, dtype=np.uint8)})
    t.reject("decode_jpeg", {"x": np.zeros((2, 3), np.uint8)})
    t.reject("decode_jpeg", {"x": np.fromfile(folder + "cmyk.jpg", np.uint8)})
