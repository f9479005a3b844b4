#pragma once
// The sub-commands of paddle-ps that plan tables, write changed copies of them, and follow a row
// through the checkpoints of a run.

#include <string>
#include <vector>

#include "common_options.h"

namespace paddle::cli {

class PsEdits {
 public:
  /// Adds `plan`, `shrink`, `merge`, `import` and `history` to the command.
  explicit PsEdits(App& app);
  /// Whether one of them was given.
  bool parsed() const;
  int run();

 private:
  int plan() const;
  int shrink() const;
  int merge() const;
  int import() const;
  int history() const;

  App *plan_, *shrink_, *merge_, *import_, *history_;
  std::string model_, table_, key_, key_type_ = "int64", output_, format_ = "csv", tensor_,
                                    keys_file_;
  std::vector<std::string> files_;
  int64_t rows_ = 1'000'000, ranks_ = 1;
  bool json_ = false;
  // Which rows are removed.
  double score_below_ = 0, show_weight_ = 0.1, click_weight_ = 1, decay_ = 1;
  int64_t unseen_days_ = 0, max_rows_ = 0;
};

}  // namespace paddle::cli
