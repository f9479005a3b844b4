#pragma once
// `paddle-ps serve`: one server of tables, for launchers other than paddle-launch.

#include <string>
#include <vector>

#include "common_options.h"
#include "train_servers.h"

namespace paddle::cli {

class PsServe {
 public:
  /// Adds `serve` to the command.
  explicit PsServe(App& app);
  bool parsed() const;
  int run();

 private:
  App* serve_;
  Option* listen_;
  std::vector<std::string> arguments_;
  std::string output_;
  int index_ = 0, servers_ = 1;
  bool insecure_network_ = false;
  ServeOptions options_;
};

}  // namespace paddle::cli
