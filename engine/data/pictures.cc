#include "data/pictures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/files.h"
#include "base/markup.h"
#include "formats/image.h"

namespace paddle::data {
namespace {

using Color = std::array<uint8_t, 3>;
/// Colors of classes, which repeat.
constexpr std::array<Color, 8> kColors = {{{230, 60, 60},
                                           {60, 180, 75},
                                           {60, 110, 230},
                                           {245, 190, 40},
                                           {200, 70, 210},
                                           {50, 200, 210},
                                           {245, 130, 50},
                                           {140, 140, 140}}};

Color color_of(int64_t label) {
  return kColors[static_cast<size_t>(label < 0 ? 7 : label % static_cast<int64_t>(kColors.size()))];
}

/// Sample `row` of a batch's array.
Array row_of(const Array& array, int64_t row) {
  Array out = array;
  out.offset += row * out.strides[0];
  out.shape.erase(out.shape.begin());
  out.strides.erase(out.strides.begin());
  return out.contiguous();
}

/// An image [channels, height, width] as RGB. Values that are not bytes are stretched to 0 … 255.
formats::Image picture_of(const Array& image) {
  formats::Image out{.height = image.shape[1], .width = image.shape[2], .channels = 3};
  const int64_t plane = out.height * out.width, channels = image.shape[0];
  double low = 0, high = 255;
  if (image.dtype != DType::kU8) {
    low = HUGE_VAL, high = -HUGE_VAL;
    for (int64_t i = 0; i < image.size(); ++i) {
      low = std::min(low, image.number(i));
      high = std::max(high, image.number(i));
    }
    if (!(high > low)) high = low + 1;
  }
  out.pixels.resize(static_cast<size_t>(plane * 3));
  for (int64_t i = 0; i < plane; ++i)
    for (int64_t c = 0; c < 3; ++c) {
      const double value = image.number((channels >= 3 ? c : 0) * plane + i);
      out.pixels[static_cast<size_t>(i * 3 + c)] = static_cast<uint8_t>(
          std::clamp(std::round((value - low) / (high - low) * 255), 0.0, 255.0));
    }
  return out;
}

void put(formats::Image& image, int64_t y, int64_t x, const Color& color) {
  if (y < 0 || x < 0 || y >= image.height || x >= image.width) return;
  std::copy(color.begin(), color.end(), image.pixels.begin() + (y * image.width + x) * 3);
}

void draw_box(formats::Image& image, const std::array<double, 4>& box, const Color& color) {
  const auto at = [](double x) { return static_cast<int64_t>(std::lround(x)); };
  const int64_t left = at(box[0]), top = at(box[1]), right = at(box[2]) - 1,
                bottom = at(box[3]) - 1;
  for (int64_t x = std::max<int64_t>(left, 0); x <= std::min(right, image.width - 1); ++x)
    put(image, top, x, color), put(image, bottom, x, color);
  for (int64_t y = std::max<int64_t>(top, 0); y <= std::min(bottom, image.height - 1); ++y)
    put(image, y, left, color), put(image, y, right, color);
}

/// Blends the colors of classes over an image of the same size.
void draw_mask(formats::Image& image, const Array& mask) {
  if (mask.shape.size() != 2 || mask.shape[0] != image.height || mask.shape[1] != image.width)
    return;
  for (int64_t i = 0; i < mask.size(); ++i) {
    const auto label = static_cast<int64_t>(mask.number(i));
    if (label == 0) continue;  // mostly the background
    const Color color = color_of(label);
    for (size_t c = 0; c < 3; ++c) {
      uint8_t& pixel = image.pixels[static_cast<size_t>(i) * 3 + c];
      pixel = static_cast<uint8_t>((pixel + color[c]) / 2);
    }
  }
}

/// "label: cat", for fields of few numbers.
std::string caption_of(const Field& field, const Array& value) {
  constexpr int64_t kMax = 12;
  std::string out = field.name + ":";
  for (int64_t i = 0; i < std::min(value.size(), kMax); ++i) {
    const double number = value.number(i);
    const auto at = static_cast<size_t>(number);
    const bool named = is_integer(field.dtype) && number >= 0 && at < field.classes.size();
    out += " " + (named ? field.classes[at] : format_float(static_cast<float>(number)));
  }
  return value.size() > kMax ? out + " …" : out;
}

std::string section(const std::string& folder, const PicturePart& part, int64_t most) {
  const std::vector<Field>& fields = part.loader->fields();
  const auto is_image = [](const Field& f) {
    return f.kind == FieldKind::kImage && f.shape.size() == 3;
  };
  if (std::none_of(fields.begin(), fields.end(), is_image))
    fail(ErrorCode::kUsage, "data.", part.name, " has no field with images");
  const auto find = [&](FieldKind kind) {
    const auto it =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.kind == kind; });
    return it == fields.end() ? -1 : it - fields.begin();
  };
  const auto boxes = find(FieldKind::kBoxes), labels = find(FieldKind::kPerBox),
             mask = find(FieldKind::kMask);
  const auto batch = part.loader->next();
  if (!batch) return "";
  std::string out = "<h2>" + escape_markup(part.name) + "</h2>\n<div class=\"all\">\n";
  for (int64_t row = 0; row < std::min(batch->samples, most); ++row) {
    out += "<figure>";
    const auto value = [&](auto field) {
      return row_of(batch->arrays[static_cast<size_t>(field)], row);
    };
    for (size_t f = 0; f < fields.size(); ++f) {
      if (!is_image(fields[f])) continue;
      formats::Image image = picture_of(value(f));
      if (mask >= 0) draw_mask(image, value(mask));
      if (boxes >= 0) {
        const Array all = value(boxes);
        for (int64_t i = 0; i < all.shape[0]; ++i) {
          const std::array<double, 4> box = {all.number(i * 4), all.number(i * 4 + 1),
                                             all.number(i * 4 + 2), all.number(i * 4 + 3)};
          if (box[2] > box[0] && box[3] > box[1])  // others are padding
            draw_box(image, box,
                     color_of(labels < 0 ? 0 : static_cast<int64_t>(value(labels).number(i))));
        }
      }
      const std::string name = str(part.name, "-", row, "-", f, ".png");
      formats::write_png(join_path(folder, name), image);
      out += str("<img src=\"", name, "\" width=\"", std::max<int64_t>(image.width, 160), "\">");
    }
    out += "<figcaption>" +
           escape_markup(part.loader->dataset().location(batch->indices[static_cast<size_t>(row)]));
    for (size_t f = 0; f < fields.size(); ++f)
      if (fields[f].kind == FieldKind::kPlain && fields[f].shape.size() <= 1 &&
          fields[f].max_length == 0)
        out += "<br>" + escape_markup(caption_of(fields[f], value(f)));
    out += "</figcaption></figure>\n";
  }
  return out + "</div>\n";
}

}  // namespace

std::string write_pictures(const std::string& folder, const std::vector<PicturePart>& parts,
                           int64_t most) {
  ensure_directory(folder);
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>samples</title>\n"
      "<style>body{font:14px sans-serif;margin:2em}.all{display:flex;flex-wrap:wrap;gap:1em}"
      "figure{margin:0}img{image-rendering:pixelated;display:block}figcaption{max-width:20em;"
      "overflow-wrap:anywhere;color:#444}</style></head><body>\n<h1>Samples after all "
      "transforms</h1>\n";
  for (const PicturePart& part : parts)
    if (part.loader) page += section(folder, part, most);
  page += "</body></html>\n";
  const std::string path = join_path(folder, "index.html");
  write_file_atomically(path, page);
  return path;
}

}  // namespace paddle::data
