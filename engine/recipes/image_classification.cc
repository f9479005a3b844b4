// Photos in a folder per class: a residual network on images of one size.

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "formats/image.h"
#include "recipes/recipes.h"

namespace paddle::recipes {
namespace fs = std::filesystem;

RecipeResult image_classification(const RecipeRequest& request) {
  if (!is_directory(request.data))
    fail(ErrorCode::kData, request.data, ": expected a folder with one folder of images per class");
  std::map<std::string, int64_t> classes;
  std::vector<int64_t> sides;
  std::vector<std::string> broken;
  for (const std::string& name : list_directory(request.data)) {
    const std::string folder = request.data + "/" + name;
    if (!is_directory(folder)) continue;
    int64_t count = 0;
    for (const std::string& file : list_directory(folder)) {
      if (!formats::has_image_ending(file)) continue;
      // Some images of each class are enough for the size.
      if (count++ >= 5) continue;
      try {
        const formats::Image image = formats::read_image(folder + "/" + file, 3);
        sides.push_back(std::min(image.height, image.width));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kData) throw;
        broken.emplace_back(error.what());
      }
    }
    if (count > 0) classes[name] = count;
  }
  if (classes.size() < 2)
    fail(ErrorCode::kData, request.data,
         ": expected a folder per class with images (JPEG, PNG, TIFF, WebP or BMP), found ",
         classes.size(), classes.size() == 1 ? " class" : " classes");
  int64_t images = 0, least = INT64_MAX;
  for (const auto& [name, count] : classes) {
    images += count;
    least = std::min(least, count);
  }
  if (sides.empty()) fail(ErrorCode::kData, broken.empty() ? request.data : broken[0]);
  std::sort(sides.begin(), sides.end());
  const int64_t middle = sides[sides.size() / 2];
  const int64_t side = request.small ? std::min<int64_t>(middle, 32) : middle;
  // Small images stay as large as they are; a narrow network that halves them at once suits them.
  const bool is_small = side < 64;
  int64_t size = std::clamp<int64_t>((side + 3) / 4 * 4, 16, 64);
  for (const int64_t each : {64, 96, 128, 160, 192, 224})
    if (side >= each) size = each;
  const int64_t stages = size >= 128 ? 5 : is_small ? 3 : 4;
  const int64_t batch = std::clamp<int64_t>(images / 20, 4, is_small ? 64 : 32);

  RecipeResult out;
  out.found = {str(images, " images in ", classes.size(), " classes, the smallest of ", least),
               str("images of about ", middle, " pixels; the model sees ", size, "x", size)};
  for (const std::string& line : broken) out.found.push_back(line + "; such files are skipped");
  out.config = str(
      R"(# Image classification: )", classes.size(), " classes, ", images,
      R"( images in a folder per class.
#   paddle-train )",
      fs::path(request.output).filename().string(), R"(        trains, paddle-eval runs/)",
      run_name(request), R"( repeats the last numbers
name: )",
      run_name(request), R"(

# A residual network. `params.width=64` on the command line makes it wider.
params: {width: )",
      request.small ? 8
      : is_small    ? 16
                    : 32,
      ", classes: ", classes.size(), R"(}
model:
  params: {width: 32, classes: 10}
  inputs: {image: "float32[batch, 3, )",
      size, ", ", size, R"(]"}
  blocks:
    conv_bn(x, channels, stride): |
      return batch_norm(conv2d(x, channels, 3, stride=stride, padding=1, bias=false))
    residual(x, channels, stride): |
      y = conv_bn(relu(conv_bn(x, channels, stride)), channels, 1)
      if stride != 1 or x.shape[1] != channels:
        x = batch_norm(conv2d(x, channels, 1, stride=stride, bias=false))
      return relu(x + y)
  model: |
    x = relu(conv_bn(image, width, )",
      size >= 96 ? 2 : 1, R"())
    for stage in range()",
      stages, "):\n",
      is_small ? R"(      x = residual(x, width * 2 ** (stage + 1), 2)
)"
               : R"(      channels = width * min(2 ** stage, 8)
      x = residual(x, channels, 2 if stage > 0 else 1)
      x = residual(x, channels, 1)
)",
      R"(    x = mean(x, [2, 3])
    logits = linear(dropout(x, 0.2), classes)
  outputs: [logits]

loss: cross_entropy(logits, label)
metrics:
  accuracy: accuracy(logits, label)

optimizer: {name: adamw, lr: )",
      is_small ? "3e-3" : "1e-3", R"(, weight_decay: 0.05}
schedule: {name: cosine, warmup: 20, end_factor: 0.01}

data:
  batch_size: )",
      batch,
      broken.empty() ? ""
                     : "\n  on_bad_sample: skip                    # files that cannot be read\n  "
                       "max_bad_rate: 0.1",
      R"(
  # Four fifths train, the rest validates; the split is the same in every run.
  train: {kind: images, path: )",
      data_path(request), R"(, split: {train: 0.8, valid: 0.2}, part: train}
  valid: {kind: images, path: )",
      data_path(request), R"(, split: {train: 0.8, valid: 0.2}, part: valid}
  augment:                               # of training images alone
    - random_resized_crop: {fields: image, height: )",
      size, ", width: ", size, R"(, area: [)", is_small ? "0.9, 1], ratio: [0.95, 1.05" : "0.4, 1",
      R"(]}
    - horizontal_flip: {fields: image}
  transforms:                            # of all images
    - resize: {fields: image, height: )",
      size, ", width: ", size, R"(}
    - scale: {fields: image, factor: 0.00392156862745098}   # 0…255 to 0…1
    - normalize: {fields: image, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}

train:
  epochs: )",
      request.small ? epochs_for(images * 4 / 5, 4000, 1) : epochs_for(images * 4 / 5, 200000, 4),
      R"(
  log_every: 20
  evaluate_every: 1 epochs
  best: accuracy
)");
  return out;
}

}  // namespace paddle::recipes
