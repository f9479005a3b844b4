#include "quant/gguf_job.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/quantize.h"
#include "formats/gguf/writer.h"
#include "quant/function_runner.h"
#include "quant/gguf_input.h"

namespace paddle::quant {
namespace {

namespace gguf = formats::gguf;

/// Blocks of ggml, or floats of 16 bits.
struct TargetType {
  int64_t type = 0;    ///< ggml's number
  int64_t values = 1;  ///< of a block
};

TargetType find_target(const std::string& name) {
  if (name == "float16") return {gguf::type_of_dtype(DType::kF16)};
  if (name == "bf16") return {gguf::type_of_dtype(DType::kBF16)};
  const gguf::BlockType* const type = gguf::find_block_type(name);
  ensure(type != nullptr, "quantize_gguf: '", name, "' is not a type");
  return {type->type, type->values};
}

/// The type with blocks of 32 that stands in for a k-quant where rows do not fill blocks of 256, as
/// in llama.cpp; nothing for other types.
std::optional<TargetType> stand_in(int64_t type) {
  const std::string name = gguf::type_name(type);
  if (name == "Q4_K") return find_target("q5_0");
  if (name == "Q5_K") return find_target("q5_1");
  if (name == "Q6_K") return find_target("q8_0");
  return std::nullopt;
}

/// The type of a tensor in the output, and why it is not the wanted one.
int64_t type_after(const gguf::WrittenTensor& tensor, TargetType wanted,
                   const std::vector<std::string>& keep, std::string& why) {
  for (const std::string& pattern : keep)
    if (matches_pattern(pattern, tensor.name)) {
      why = "--keep-float " + pattern;
      return tensor.type;
    }
  if (tensor.shape.size() < 2) {
    why = "it is not a matrix";
    return tensor.type;
  }
  if (tensor.name.find(".ffn_gate_inp") != std::string::npos) {
    why = "it chooses experts";
    return tensor.type;
  }
  std::optional<TargetType> type = wanted;
  while (type && tensor.shape.back() % type->values != 0) {
    why = str("its rows of ", tensor.shape.back(), " do not fill blocks of ", wanted.values);
    type = stand_in(type->type);
  }
  return type ? type->type : tensor.type;
}

/// ggml's number of a file that is mostly of this type.
uint32_t file_type(int64_t type) {
  switch (type) {
    case 1:
      return 1;
    case 2:
      return 2;
    case 3:
      return 3;
    case 6:
      return 8;
    case 7:
      return 9;
    case 12:
      return 14;  // MOSTLY_Q4_K_S: every matrix
    case 13:
      return 16;
    case 14:
      return 18;
    case 30:
      return 32;
    default:
      return 7;
  }
}

double sqnr_of(int64_t type, const Array& values, gguf::BlockScales scales) {
  Array found = Array::empty(DType::kF32, values.shape);
  if (const gguf::BlockType* const blocks = gguf::find_block_type(type)) {
    const auto bytes = gguf::quantize(
        *blocks, std::span<const float>(values.data<float>(), static_cast<size_t>(values.size())),
        scales);
    const gguf::BlockFormat& format = *gguf::find_block_format(type);
    for (int64_t b = 0; b < values.size() / blocks->values; ++b)
      format.dequantize(bytes.data() + b * blocks->bytes, found.data<float>() + b * blocks->values);
  } else {
    found = values.cast(type == 1 ? DType::kF16 : DType::kBF16).cast(DType::kF32).contiguous();
  }
  Sqnr sqnr;
  sqnr.add(values, found);
  return sqnr.decibels();
}

/// The metadata with the type of the file.
std::vector<gguf::RawValue> metadata_of(const GgufInput& input, const gguf::RawValue& stated) {
  std::vector<gguf::RawValue> out = input.metadata();
  const auto place = std::find_if(
      out.begin(), out.end(), [&](const gguf::RawValue& each) { return each.key == stated.key; });
  if (place == out.end())
    out.push_back(stated);
  else
    place->bytes = stated.bytes;
  return out;
}

/// One tensor as it was declared.
void write_tensor(const GgufInput& input, size_t index, const gguf::WrittenTensor& declared,
                  gguf::BlockScales scales, GgufTensor& entry, gguf::Writer& writer) {
  if (declared.type == input.tensors()[index].type) {
    input.copy(index, writer);
    return;
  }
  const Array values = input.read(index);
  entry.sqnr_db = sqnr_of(declared.type, values, scales);
  if (gguf::find_block_type(declared.type)) {
    writer.add(values, scales);
    return;
  }
  constexpr float kMaxHalf = 65504;
  const float* const each = values.data<float>();
  if (declared.type == 1 && std::any_of(each, each + values.size(),
                                        [](float value) { return std::abs(value) > kMaxHalf; }))
    fail(ErrorCode::kModel, entry.name,
         ": has values beyond the largest float16 (65504); use the "
         "scheme bf16, or --keep-float ",
         entry.name);
  writer.add(values.cast(declared.type == 1 ? DType::kF16 : DType::kBF16));
}

}  // namespace

std::vector<std::string> gguf_scheme_names() {
  std::vector<std::string> out = gguf::block_type_names();
  out.insert(out.end(), {"float16", "bf16"});
  return out;
}

GgufReport quantize_gguf(const GgufJob& job, bool dry_run, const Progress& progress) {
  const TargetType type = find_target(job.type);
  const std::unique_ptr<GgufInput> input = open_gguf_input(job.model);
  const std::vector<gguf::WrittenTensor>& tensors = input->tensors();
  std::vector<std::string> names;
  for (const gguf::WrittenTensor& tensor : tensors) names.push_back(tensor.name);
  for (const std::string& pattern : job.keep_float)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches_pattern(pattern, name); }))
      fail(ErrorCode::kConfig, "--keep-float: no tensor matches '", pattern, "'",
           did_you_mean(pattern, names));
  GgufReport report;
  report.notes = input->notes();
  std::vector<gguf::WrittenTensor> written;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const gguf::WrittenTensor& tensor = tensors[i];
    GgufTensor entry{tensor.name, gguf::type_name(tensor.type), "", 0, ""};
    const int64_t after = type_after(tensor, type, job.keep_float, entry.why);
    entry.after = gguf::type_name(after);
    written.push_back({tensor.name, after, tensor.shape});
    report.bytes_before += input->bytes(i);
    report.bytes_after +=
        gguf::bytes_of(after, element_count(std::span<const int64_t>(tensor.shape)));
    report.tensors.push_back(std::move(entry));
  }
  if (dry_run) return report;
  if (!job.overwrite && file_exists(job.output))
    fail(ErrorCode::kUsage, job.output, ": already exists (--overwrite replaces it)");
  gguf::Metadata stated;
  stated.add_integer("general.file_type", file_type(type.type));
  gguf::Writer writer(job.output, written, metadata_of(*input, stated.values()[0]),
                      input->alignment());
  for (size_t i = 0; i < written.size(); ++i) {
    progress({str(written[i].name, " (", i + 1, " of ", written.size(), ")"),
              static_cast<int64_t>(i), static_cast<int64_t>(written.size())});
    write_tensor(*input, i, written[i], job.scales, report.tensors[i], writer);
  }
  writer.close();
  return report;
}

std::string gguf_report_json(const GgufJob& job, const GgufReport& report) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const GgufTensor& each : report.tensors) {
    nlohmann::ordered_json entry = {
        {"name", each.name}, {"before", each.before}, {"after", each.after}};
    if (each.before != each.after) entry["sqnr_db"] = each.sqnr_db;
    if (!each.why.empty()) entry["why"] = each.why;
    tensors.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{
      {"version", 1},
      {"scheme", job.type},
      {"scales", job.scales == gguf::BlockScales::kSearched ? "searched" : "plain"},
      {"model", job.model},
      {"output", job.output},
      {"bytes", {{"float", report.bytes_before}, {"quantized", report.bytes_after}}},
      {"tensors", tensors}}
      .dump();
}

}  // namespace paddle::quant
