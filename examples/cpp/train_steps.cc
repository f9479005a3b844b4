// train_steps CONFIG RUN_FOLDER LOSS [key=value…]: trains step by step until the loss is below
// LOSS, writes a checkpoint on the way, and predicts with the result.

#include <paddle/paddle.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: train_steps CONFIG RUN_FOLDER LOSS [key=value...]\n");
    return 2;
  }
  try {
    paddle::TrainOptions options;
    options.output = argv[2];
    options.overrides.assign(argv + 4, argv + argc);
    options.overwrite = true;
    paddle::Trainer trainer(argv[1], options);

    const double wanted = std::atof(argv[3]);
    long long steps = 0;
    while (const auto step = trainer.step()) {
      ++steps;
      if (step->evaluation)
        std::printf("step %lld: loss %.4f, on the validation data %.4f\n",
                    static_cast<long long>(step->step), step->loss, step->evaluation->loss);
      if (steps == 10) std::printf("checkpoint %s\n", trainer.save().c_str());
      if (step->loss < wanted) break;
    }
    const paddle::TrainResult result = trainer.finish();
    std::printf("%lld steps, model in %s\n", steps, result.model_folder.c_str());

    // The optimizations may be left out, to compare.
    paddle::ModelOptions exact;
    exact.exact = true;
    const paddle::Model model(result.model_folder, exact);
    std::printf("%lld parameters\n", static_cast<long long>(model.parameter_count()));
  } catch (const paddle::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
