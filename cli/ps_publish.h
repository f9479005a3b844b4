#pragma once
// `paddle-ps publish` and `rollback`: the versions of a store that paddle-serve follows.

#include <string>

#include "common_options.h"
#include "train/tables/publish.h"

namespace paddle::cli {

class PsPublish {
 public:
  /// Adds the commands.
  explicit PsPublish(App& app);
  bool parsed() const;
  int run();

 private:
  int publish();
  int rollback() const;

  App *publish_, *rollback_;
  std::string model_, store_, version_, dtype_ = "float32";
  Option *base_score_, *delta_score_, *delta_days_;
  train::PublishRules rules_;
  double base_least_ = 0, delta_least_ = 0;
  int64_t days_ = 0;
  bool whole_ = false, json_ = false;
};

}  // namespace paddle::cli
