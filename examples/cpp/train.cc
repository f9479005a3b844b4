// train CONFIG RUN_FOLDER [key=value…]: trains as the config says, prints the log, and predicts
// with the result.

#include <paddle/paddle.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: train CONFIG RUN_FOLDER [key=value...]\n");
    return 2;
  }
  try {
    paddle::TrainOptions options;
    options.output = argv[2];
    options.overrides.assign(argv + 3, argv + argc);
    options.overwrite = true;
    options.on_log = [](const paddle::LogLine& line) {
      std::printf("%s step %lld loss %.4f\n", line.kind.c_str(), static_cast<long long>(line.step),
                  line.loss);
    };
    options.on_warning = [](const std::string& line) {
      std::fprintf(stderr, "warning: %s\n", line.c_str());
    };
    paddle::Trainer trainer(argv[1], options);
    const paddle::TrainResult result = trainer.run();
    std::printf("%lld steps, model in %s\n", static_cast<long long>(result.steps),
                result.model_folder.c_str());

    const paddle::Model model(result.model_folder);
    std::printf("%lld parameters\n", static_cast<long long>(model.parameter_count()));
  } catch (const paddle::ConfigError& e) {
    // Every wrong key of the config, a line each.
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.code());
  } catch (const paddle::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return static_cast<int>(e.code());
  }
}
