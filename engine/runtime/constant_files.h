#pragma once
// Large constants of module texts as files next to them: `constants/HASH.safetensors`, one for each
// content, so that the texts of all passes share what they have in common.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "ir/constants.h"

namespace paddle::runtime {

class ConstantFiles final : public ir::ConstantStore {
 public:
  /// Constants of more elements are worth a file.
  static constexpr int64_t kMaxLength = 1 << 10;

  /// `folder` is that of the texts; nothing is made there before a constant needs it.
  explicit ConstantFiles(std::string folder) : folder_(std::move(folder)) {}
  /// kDevice if the file cannot be written.
  std::string put(const Array& array) override;
  /// kModel if the file is missing or is not one that `put` wrote.
  Array get(const std::string& name) const override;

 private:
  std::string folder_;
  /// Names by the address and the type of what was written, while that memory lives.
  std::map<std::pair<const void*, std::string>, std::pair<std::weak_ptr<Storage>, std::string>>
      written_;
};

}  // namespace paddle::runtime
