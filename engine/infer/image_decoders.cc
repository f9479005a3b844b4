// Boxes and masks, in the pixels of the image as its file has it.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/image.h"
#include "infer/decoders.h"

namespace paddle::infer {
namespace {

struct FoundBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  double score = 0;
  int64_t label = 0;
};

double overlap_of(const FoundBox& a, const FoundBox& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (!(width > 0) || !(height > 0)) return 0;
  const auto area = [](const FoundBox& box) {
    return (box.right - box.left) * (box.bottom - box.top);
  };
  return width * height / (area(a) + area(b) - width * height);
}

/// The best boxes, without those that overlap a better one of their class.
std::vector<FoundBox> suppressed(std::vector<FoundBox> boxes,
                                 const program::BoxPrediction& options) {
  // More candidates change little and cost the square of their number.
  constexpr size_t kMaxCandidates = 3000;
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const FoundBox& a, const FoundBox& b) { return a.score > b.score; });
  if (boxes.size() > kMaxCandidates) boxes.resize(kMaxCandidates);
  std::vector<FoundBox> kept;
  for (const FoundBox& box : boxes) {
    if (static_cast<int64_t>(kept.size()) == options.most) break;
    if (std::none_of(kept.begin(), kept.end(), [&](const FoundBox& better) {
          return better.label == box.label && overlap_of(better, box) > options.overlap;
        }))
      kept.push_back(box);
  }
  return kept;
}

/// A box of the transformed image in the pixels of the source; nullopt if it is outside.
std::optional<FoundBox> in_source(const FoundBox& box, const SourceImage& image) {
  const data::Placement& p = image.placement;
  const double determinant = p.xx * p.yy - p.xy * p.yx;
  if (determinant == 0) return std::nullopt;
  FoundBox out = box;
  out.left = out.top = HUGE_VAL, out.right = out.bottom = -HUGE_VAL;
  for (const double x : {box.left, box.right})
    for (const double y : {box.top, box.bottom}) {
      const double dx = x - p.x0, dy = y - p.y0;
      const double sx = (p.yy * dx - p.xy * dy) / determinant,
                   sy = (p.xx * dy - p.yx * dx) / determinant;
      out.left = std::min(out.left, sx), out.right = std::max(out.right, sx);
      out.top = std::min(out.top, sy), out.bottom = std::max(out.bottom, sy);
    }
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  out.left = std::clamp(out.left, 0.0, width), out.right = std::clamp(out.right, 0.0, width);
  out.top = std::clamp(out.top, 0.0, height), out.bottom = std::clamp(out.bottom, 0.0, height);
  if (!(out.left < out.right) || !(out.top < out.bottom)) return std::nullopt;
  return out;
}

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

class BoxDecoder final : public Decoder {
 public:
  BoxDecoder(const program::Model& model, const program::BoxPrediction& options)
      : options_(options),
        boxes_(output_of(model, options.boxes)),
        scores_(output_of(model, options.scores)),
        names_(class_names(model, options.field)) {}

  std::vector<Decoded> decode(program::Model& model, const InputBatch& batch) override {
    const auto& outputs = model.run(batch.inputs);
    const Array boxes = outputs[boxes_].contiguous(), scores = outputs[scores_].contiguous();
    check_output(options_.boxes, boxes, 3, "boxes [batch, n, 4]");
    check_output(options_.scores, scores, 3, "scores [batch, n, classes]");
    if (boxes.shape[2] != 4 || boxes.shape[1] != scores.shape[1])
      fail(ErrorCode::kModel, "predict: boxes ", str(boxes.shape), " and scores ",
           str(scores.shape), " do not fit; expected [batch, n, 4] and [batch, n, classes]");
    std::vector<Decoded> out;
    for (int64_t row = 0; row < batch.rows; ++row) {
      std::vector<FoundBox> found;
      for (FoundBox& box : suppressed(candidates(boxes, scores, row), options_)) {
        if (batch.images.size() == static_cast<size_t>(batch.rows)) {
          const auto moved = in_source(box, batch.images[static_cast<size_t>(row)]);
          if (!moved) continue;
          box = *moved;
        }
        found.push_back(box);
      }
      out.push_back(decoded(found));
    }
    return out;
  }
  std::vector<std::string> columns() const override {
    return {"class", "score", "left", "top", "right", "bottom"};
  }
  std::string label_field() const override { return options_.field; }

 private:
  std::vector<FoundBox> candidates(const Array& boxes, const Array& scores, int64_t row) const {
    std::vector<FoundBox> out;
    const int64_t count = scores.shape[1], classes = scores.shape[2];
    for (int64_t i = row * count; i < (row + 1) * count; ++i)
      for (int64_t c = 0; c < classes; ++c) {
        double score = scores.number(i * classes + c);
        if (options_.is_logits) score = 1 / (1 + std::exp(-score));
        if (!(score >= options_.threshold)) continue;
        FoundBox box{boxes.number(4 * i),
                     boxes.number(4 * i + 1),
                     boxes.number(4 * i + 2),
                     boxes.number(4 * i + 3),
                     score,
                     c};
        if (box.left < box.right && box.top < box.bottom) out.push_back(box);
      }
    return out;
  }
  Decoded decoded(const std::vector<FoundBox>& found) const {
    Decoded out;
    auto list = nlohmann::ordered_json::array();
    std::vector<std::string> shown;
    for (const FoundBox& box : found) {
      const std::string name = class_name(names_, box.label);
      const double score = rounded(box.score, 1e4);
      const double corners[] = {rounded(box.left, 1e2), rounded(box.top, 1e2),
                                rounded(box.right, 1e2), rounded(box.bottom, 1e2)};
      nlohmann::ordered_json each;
      each["class"] = name;
      each["score"] = score;
      each["box"] = corners;
      list.push_back(each);
      std::vector<std::string>& cells = out.cells.emplace_back();
      cells = {name, format_double(score)};
      for (const double corner : corners) cells.push_back(format_double(corner));
      std::vector<std::string> pixels;
      for (const double corner : corners) pixels.push_back(format_double(std::round(corner)));
      shown.push_back(
          str(name, " ", format_double(rounded(score, 1e2)), " [", join(pixels, ", "), "]"));
    }
    out.json = nlohmann::ordered_json{{"boxes", list}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.text = shown.empty() ? "no boxes" : join(shown, ", ");
    return out;
  }

  program::BoxPrediction options_;
  size_t boxes_, scores_;
  std::vector<std::string> names_;
};

/// The class of each pixel of an image of this size. `scores` is [classes, height, width]; where
/// they are fewer or more than pixels, they are interpolated.
std::vector<int64_t> classes_of_pixels(const float* scores, const Dims& shape,
                                       const SourceImage& image) {
  const int64_t classes = shape[0], rows = shape[1], columns = shape[2];
  const data::Placement& p = image.placement;
  const double down = static_cast<double>(rows) / static_cast<double>(p.height),
               across = static_cast<double>(columns) / static_cast<double>(p.width);
  std::vector<int64_t> out(static_cast<size_t>(image.height * image.width));
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      const double cx = static_cast<double>(x) + 0.5, cy = static_cast<double>(y) + 0.5;
      const double sx = std::clamp((p.xx * cx + p.xy * cy + p.x0) * across - 0.5, 0.0,
                                   static_cast<double>(columns - 1)),
                   sy = std::clamp((p.yx * cx + p.yy * cy + p.y0) * down - 0.5, 0.0,
                                   static_cast<double>(rows - 1));
      const auto left = static_cast<int64_t>(sx), top = static_cast<int64_t>(sy);
      const int64_t right = std::min(left + 1, columns - 1), bottom = std::min(top + 1, rows - 1);
      const auto u = static_cast<float>(sx - static_cast<double>(left)),
                 v = static_cast<float>(sy - static_cast<double>(top));
      int64_t best = 0;
      float most = -HUGE_VALF;
      for (int64_t c = 0; c < classes; ++c) {
        const float* const plane = scores + c * rows * columns;
        const float score =
            (1 - v) * ((1 - u) * plane[top * columns + left] + u * plane[top * columns + right]) +
            v * ((1 - u) * plane[bottom * columns + left] + u * plane[bottom * columns + right]);
        if (score > most) most = score, best = c;
      }
      out[static_cast<size_t>(y * image.width + x)] = best;
    }
  return out;
}

/// Names of pictures in a folder: those of the images, or the numbers of rows.
class PictureNames {
 public:
  void open(const std::string& folder) {
    folder_ = folder;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error || !is_directory(folder))
      fail(ErrorCode::kUsage, "--output: cannot make the folder '", folder, "'");
  }
  bool is_open() const { return !folder_.empty(); }
  std::string next(const InputBatch& batch, int64_t row) {
    const auto at = static_cast<size_t>(row);
    std::string source = at < batch.texts.size()    ? batch.texts[at]
                         : at < batch.places.size() ? batch.places[at]
                                                    : "";
    const int64_t number = at < batch.indices.size() ? batch.indices[at] : row;
    if (!formats::has_image_ending(source)) source = str("row-", number, ".png");
    const std::string stem = std::filesystem::path(source).stem().string();
    std::string name = stem + ".png";
    if (!used_.insert(name).second) used_.insert(name = str(stem, "-", number, ".png"));
    std::string path = join_path(folder_, name);
    if (std::error_code error; std::filesystem::equivalent(path, source, error))
      fail(ErrorCode::kUsage, "--output: '", path,
           "' is an image of the input; give another folder");
    return path;
  }

 private:
  std::string folder_;
  std::set<std::string> used_;
};

class MaskDecoder final : public Decoder {
 public:
  MaskDecoder(const program::Model& model, const program::MaskPrediction& options)
      : options_(options),
        output_(output_of(model, options.scores)),
        image_(model.inputs().at(0).first),
        names_(class_names(model, options.field)) {
    if (const auto run = run_data(model))
      if (const auto* records = std::get_if<data::CsvFileOptions>(&run->train.source))
        for (const data::CsvField& field : records->fields)
          if (field.name == options.field)
            for (const auto& [value, name] : field.values) values_.push_back(value);
    // An image of 8 bits holds no larger values; then it has the numbers of the classes.
    if (std::any_of(values_.begin(), values_.end(), [](int64_t v) { return v < 0 || v > 255; }))
      values_.clear();
  }

  std::vector<Decoded> decode(program::Model& model, const InputBatch& batch) override {
    const Array scores = model.run(batch.inputs)[output_].cast(DType::kF32).contiguous();
    check_output(options_.scores, scores, 4, "scores [batch, classes, height, width]");
    if (scores.shape[1] > 256)
      fail(ErrorCode::kModel, "predict: masks have at most 256 classes, not ", scores.shape[1]);
    const Dims shape(scores.shape.begin() + 1, scores.shape.end());
    std::vector<Decoded> out;
    for (int64_t row = 0; row < batch.rows; ++row) {
      SourceImage image{shape[1], shape[2], {}};
      image.placement.height = shape[1], image.placement.width = shape[2];
      if (batch.images.size() == static_cast<size_t>(batch.rows))
        image = batch.images[static_cast<size_t>(row)];
      const auto classes = classes_of_pixels(
          scores.data<float>() + row * element_count(std::span<const int64_t>(shape)), shape,
          image);
      std::string path;
      if (pictures_.is_open()) {
        path = pictures_.next(batch, row);
        write(path, classes, image);
      }
      out.push_back(decoded(path, classes, shape[0]));
    }
    count_ = shape[0];
    return out;
  }
  std::vector<std::string> columns() const override {
    std::vector<std::string> out = {"mask"};
    const auto count = std::max<int64_t>(count_, static_cast<int64_t>(names_.size()));
    for (int64_t c = 0; c < count; ++c) out.push_back("share_" + class_name(names_, c));
    return out;
  }
  std::string text_field() const override { return image_; }
  std::string label_field() const override { return options_.field; }
  void write_pictures(const std::string& folder) override { pictures_.open(folder); }

 private:
  void write(const std::string& path, const std::vector<int64_t>& classes,
             const SourceImage& size) const {
    formats::Image image{.height = size.height, .width = size.width, .channels = 1};
    for (const int64_t c : classes)
      image.pixels.push_back(static_cast<uint8_t>(
          c < static_cast<int64_t>(values_.size()) ? values_[static_cast<size_t>(c)] : c));
    formats::write_png(path, image);
  }
  Decoded decoded(const std::string& path, const std::vector<int64_t>& classes,
                  int64_t count) const {
    std::vector<int64_t> pixels(static_cast<size_t>(count));
    for (const int64_t c : classes) ++pixels[static_cast<size_t>(c)];
    Decoded out;
    out.cells = {{path}};
    auto shares = nlohmann::ordered_json::object();
    std::vector<std::string> shown;
    for (int64_t c = 0; c < count; ++c) {
      const double share = rounded(static_cast<double>(pixels[static_cast<size_t>(c)]) /
                                       static_cast<double>(std::max<size_t>(classes.size(), 1)),
                                   1e4);
      shares[class_name(names_, c)] = share;
      out.cells[0].push_back(format_double(share));
      if (share > 0)
        shown.push_back(
            str(class_name(names_, c), " ", format_double(rounded(100 * share, 10)), "%"));
    }
    out.json = nlohmann::ordered_json{{"shares", shares}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.text = (path.empty() ? "" : path + "  ") + join(shown, ", ");
    return out;
  }

  program::MaskPrediction options_;
  size_t output_;
  std::string image_;
  std::vector<std::string> names_;
  std::vector<int64_t> values_;  ///< stored values by class; empty: the numbers of the classes
  int64_t count_ = 0;
  PictureNames pictures_;
};

}  // namespace

std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::BoxPrediction& options) {
  return std::make_unique<BoxDecoder>(model, options);
}
std::unique_ptr<Decoder> decoder_for(const program::Model& model,
                                     const program::MaskPrediction& options) {
  return std::make_unique<MaskDecoder>(model, options);
}

}  // namespace paddle::infer
