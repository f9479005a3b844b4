// predict MODEL [NUMBER…]: opens a model, lists its inputs and outputs, and predicts once. The
// numbers fill the inputs in order; the rest are zeros.

#include <paddle/paddle.h>

#include <cstdio>
#include <cstdlib>

namespace {

void print(const char* what, const std::vector<paddle::TensorInfo>& tensors) {
  for (const paddle::TensorInfo& t : tensors) {
    std::printf("%s %s: %s [", what, t.name.c_str(), paddle::dtype_name(t.dtype));
    for (size_t i = 0; i < t.dims.size(); ++i)
      std::printf("%s%s", i > 0 ? ", " : "", t.dims[i].c_str());
    std::printf("]\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: predict MODEL [NUMBER...]\n");
    return 2;
  }
  try {
    paddle::Model model(argv[1]);
    print("input", model.inputs());
    print("output", model.outputs());

    std::vector<paddle::Array> inputs;
    int next = 2;
    for (const paddle::TensorInfo& info : model.inputs()) {
      std::vector<int64_t> shape = info.shape;
      for (int64_t& size : shape)
        if (size < 0) size = 1;  // a batch of one
      paddle::Array values(paddle::DType::kFloat64, shape);
      for (int64_t i = 0; i < values.size() && next < argc; ++i)
        values.data<double>()[i] = std::atof(argv[next++]);
      inputs.push_back(values.cast(info.dtype));
    }
    const std::vector<paddle::Array> outputs = model.predict(inputs);
    for (const paddle::Array& output : outputs) std::printf("%s\n", output.text().c_str());
  } catch (const paddle::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
