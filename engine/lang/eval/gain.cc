#include "lang/eval/gain.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace paddle::lang {

double activation_gain(std::string_view callee, const std::string& activation,
                       std::optional<double> slope) {
  if (activation == "leaky_relu") {
    const double each = slope.value_or(0.01);
    return std::sqrt(2 / (1 + each * each));
  }
  constexpr std::array<std::pair<const char*, double>, 11> kGains = {{{"linear", 1},
                                                                      {"sigmoid", 1},
                                                                      {"conv1d", 1},
                                                                      {"conv2d", 1},
                                                                      {"conv3d", 1},
                                                                      {"conv1d_transpose", 1},
                                                                      {"conv2d_transpose", 1},
                                                                      {"conv3d_transpose", 1},
                                                                      {"tanh", 5.0 / 3},
                                                                      {"relu", M_SQRT2},
                                                                      {"selu", 0.75}}};
  std::vector<std::string> known = {"leaky_relu"};
  for (const auto& [known_name, gain] : kGains) {
    if (activation == known_name) {
      if (slope) fail(ErrorCode::kConfig, callee, ": '", activation, "' has no parameter");
      return gain;
    }
    known.emplace_back(known_name);
  }
  fail(ErrorCode::kConfig, callee, ": no gain is known for '", activation, "'",
       did_you_mean(activation, known), "; known are ", join(known, ", "));
}

}  // namespace paddle::lang
