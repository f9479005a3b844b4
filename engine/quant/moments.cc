#include "quant/moments.h"

#include <algorithm>

#include "quant/moment_function.h"

namespace paddle::quant {
namespace {

int64_t features_of(const Quantizable& model, size_t layer) {
  const Array& weight = model.weight(layer);
  const Layer& l = model.layers()[layer];
  const int64_t channels = weight.shape[axis_of(l.channel_axis(), weight.shape.size())];
  return channels == 0 ? 0 : weight.size() / channels;
}

void add(std::vector<double>& sum, const Array& part) {
  const Array packed = part.contiguous();
  const float* const from = packed.data<float>();
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(from[i]);
}

}  // namespace

bool can_collect_moments(const Quantizable& model, size_t layer) {
  return model.layers()[layer].quantized && has_moments(model, layer) &&
         features_of(model, layer) <= kMaxFeatures;
}

void collect_moments(const Quantizable& model, const std::vector<size_t>& layers,
                     const BatchSource& batches, const WeightSource& weight,
                     const std::function<void(size_t, const Moments&)>& use) {
  constexpr int64_t kMaxElements = int64_t{1} << 26;  // at a time
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin;
    int64_t elements = 0;
    std::vector<Moments> found;
    while (end < layers.size()) {
      const int64_t n = features_of(model, layers[end]);
      if (end > begin && elements + n * n > kMaxElements) break;
      elements += n * n;
      found.push_back({n, std::vector<double>(static_cast<size_t>(n * n)),
                       std::vector<double>(static_cast<size_t>(n))});
      ++end;
    }
    const std::vector<size_t> part(layers.begin() + static_cast<ptrdiff_t>(begin),
                                   layers.begin() + static_cast<ptrdiff_t>(end));
    FunctionRunner runner(with_moments(model, part), weight);
    std::vector<double> samples(part.size(), 0);
    batches([&](const std::vector<Array>& inputs) {
      const auto results = runner.run(inputs);
      for (size_t i = 0; i < part.size(); ++i) {
        const size_t at = model.outputs() + 3 * i;
        add(found[i].products, results.at(at));
        add(found[i].mean, results.at(at + 1));
        samples[i] += results.at(at + 2).number();
      }
    });
    for (size_t i = 0; i < part.size(); ++i) {
      const double n = std::max(samples[i], 1.0);
      for (double& each : found[i].products) each /= n;
      for (double& each : found[i].mean) each /= n;
      use(part[i], found[i]);
      found[i] = {};
    }
    begin = end;
  }
}

std::vector<PairedMoments> collect_paired_moments(const Quantizable& model,
                                                  const std::vector<size_t>& layers,
                                                  const BatchSource& batches,
                                                  const WeightSource& weight) {
  std::map<std::string, Array> weights;
  const auto function = with_paired_moments(model, layers, weights);
  FunctionRunner runner(function, [&](const std::string& name) {
    const auto found = weights.find(name);
    return found == weights.end() ? weight(name) : found->second;
  });
  std::vector<PairedMoments> out;
  for (const size_t layer : layers) {
    const int64_t n = features_of(model, layer);
    const std::vector<double> none(static_cast<size_t>(n * n));
    out.push_back({{n, none, {}}, none});
  }
  std::vector<double> samples(layers.size(), 0);
  batches([&](const std::vector<Array>& inputs) {
    const auto results = runner.run(inputs);
    for (size_t i = 0; i < layers.size(); ++i) {
      add(out[i].quantized.products, results.at(3 * i));
      add(out[i].mixed, results.at(3 * i + 1));
      samples[i] += results.at(3 * i + 2).number();
    }
  });
  for (size_t i = 0; i < layers.size(); ++i) {
    for (double& each : out[i].quantized.products) each /= std::max(samples[i], 1.0);
    for (double& each : out[i].mixed) each /= std::max(samples[i], 1.0);
  }
  return out;
}

}  // namespace paddle::quant
