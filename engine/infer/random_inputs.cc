#include "infer/random_inputs.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "formats/onnx/model.h"
#include "tensor/random.h"

namespace paddle::infer {

std::map<std::string, int64_t> dim_sizes(const program::Model& model, int64_t batch,
                                         const std::vector<std::string>& given) {
  std::map<std::string, int64_t> sizes;
  std::vector<std::string> symbols;
  for (const auto& [name, type] : model.inputs()) {
    if (!type.shape.empty() && type.shape[0].is_symbol()) sizes[type.shape[0].text()] = batch;
    for (const Dim& d : type.shape)
      if (d.is_symbol()) symbols.push_back(d.text());
  }
  for (const std::string& d : given) {
    const size_t equals = d.find('=');
    if (equals == std::string::npos)
      fail(ErrorCode::kUsage, "--dim: expected name=value, found '", d, "'");
    const std::string name = formats::onnx::symbol_of(d.substr(0, equals));
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end())
      fail(ErrorCode::kUsage, "--dim: no input has a dim '", name, "'",
           did_you_mean(name, symbols));
    const std::string value = d.substr(equals + 1);
    int64_t& size = sizes[name];
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || end != value.data() + value.size() || size < 0)
      fail(ErrorCode::kUsage, "--dim: '", value, "' is not a size");
  }
  return sizes;
}

std::vector<Array> random_inputs(const program::Model& model,
                                 const std::map<std::string, int64_t>& sizes) {
  std::vector<Array> out;
  for (const auto& [name, type] : model.inputs()) {
    Dims dims;
    for (const Dim& d : type.shape) {
      const auto value = d.evaluate([&](const std::string& symbol) -> std::optional<int64_t> {
        const auto it = sizes.find(symbol);
        return it == sizes.end() ? std::nullopt : std::optional<int64_t>(it->second);
      });
      if (!value)
        fail(ErrorCode::kUsage, "the size of '", d, "' in '", name, "' ", type,
             " is not given; add --dim ", d, "=N");
      dims.push_back(*value);
    }
    if (!info(type.dtype).has_kernels)
      fail(ErrorCode::kUsage, "no random values of ", text(type.dtype), " for '", name,
           "'; time it on values of yours with --input");
    Array a = Array::zeros(type.dtype, dims);
    const Random random(7, stream_of(name));
    if (type.dtype == DType::kF32)
      random.fill_normal(std::span(a.data<float>(), static_cast<size_t>(a.size())));
    if (type.dtype == DType::kF64)
      random.fill_normal(std::span(a.data<double>(), static_cast<size_t>(a.size())));
    out.push_back(a);
  }
  return out;
}

}  // namespace paddle::infer
