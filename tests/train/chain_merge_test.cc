// A base and its deltas that are merged while the checkpoint with them may be removed.

#include "train/tables/chain_merge.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/scratch_folder.h"

namespace paddle::train {
namespace {

namespace fs = std::filesystem;
using tables::kShards;

class ChainMerges : public ::testing::Test {
 protected:
  std::string place(const std::string& name) const {
    return (fs::path(scratch_.path()) / name).string();
  }
  /// Rows of these keys with this value.
  tables::RecordTable rows(uint64_t first, uint64_t last, float value) const {
    tables::RecordTable out(DType::kF32, 1, 0);
    for (uint64_t key = first; key < last; ++key)
      std::memcpy(out.insert(key), &value, sizeof value);
    return out;
  }
  /// A base of step 1 and a delta of step 2, which changes, adds and removes rows.
  void write_chain() const {
    const std::string base =
        tables::write_segments(place("1"), format_, rows(0, 5000, 1), {0, kShards}, 1);
    tables::write_manifest(place("1"), format_, 1, {&base, 1});
    add_delta("1", "2", 2, rows(4000, 6000, 2), 5999, "");
  }
  void add_delta(const std::string& before, const std::string& name, int64_t step,
                 const tables::RecordTable& changed, int64_t count, const std::string& base) const {
    const std::vector<uint64_t> deleted = {static_cast<uint64_t>(step)};
    const std::string delta =
        tables::write_delta(place(name), format_, changed, deleted, {0, kShards}, step);
    tables::write_delta_manifest(place(name), place(before), format_, step, count, {&delta, 1},
                                 base);
  }
  std::map<uint64_t, float> content(const std::string& folder) const {
    std::map<uint64_t, float> out;
    for (const auto& part : tables::read_segments(folder, format_, {0, kShards}, true))
      for (int64_t i = 0; i < part.keys.size(); ++i)
        out[static_cast<const uint64_t*>(part.keys.raw())[i]] =
            static_cast<float>(part.weight.number(i));
    return out;
  }
  static std::map<uint64_t, float> wanted() {
    std::map<uint64_t, float> out;
    for (uint64_t key = 0; key < 6000; ++key)
      if (key != 2) out[key] = key < 4000 ? 1.0F : 2.0F;
    return out;
  }

  ScratchFolder scratch_;
  const tables::TableFormat format_ = {"t", DType::kU64, DType::kF32, 1, {}};
};

TEST_F(ChainMerges, HaveTheRowsOfTheSaves) {
  write_chain();
  ASSERT_EQ(content(place("2")), wanted());
  // The checkpoint after it begins before the merge is over, and has a delta more.
  ChainMerge merge(place("2"), place("merging"), format_);
  add_delta("2", "3", 3, rows(10, 20, 3), 5998, "");
  fs::remove_all(place("1"));
  fs::remove_all(place("2"));
  ASSERT_TRUE(merge.wait());
  EXPECT_TRUE(merge.is_over());
  EXPECT_EQ(content(merge.base()), wanted());
  add_delta("3", "4", 4, rows(30, 40, 4), 5997, merge.base());
  const tables::SavedChain chain = tables::read_chain(place("4"));
  EXPECT_EQ(chain.base_step, 2);
  EXPECT_EQ(chain.delta_steps, (std::vector<int64_t>{3, 4}));
  EXPECT_FALSE(fs::exists(fs::path(place("4")) / "base-1"));
  std::map<uint64_t, float> last = wanted();
  last.erase(3);
  last.erase(4);
  for (uint64_t key = 0; key < 10; ++key) {
    last[key + 10] = 3;
    last[key + 30] = 4;
  }
  EXPECT_EQ(content(place("4")), last);
}

TEST_F(ChainMerges, AreRemovedAtTheirEnd) {
  write_chain();
  { const ChainMerge merge(place("2"), place("merging"), format_); }
  EXPECT_FALSE(fs::exists(place("merging")));
  EXPECT_EQ(content(place("2")), wanted());
}

TEST_F(ChainMerges, OfDamagedFilesGiveNoBase) {
  write_chain();
  const fs::path file = fs::path(place("2")) / "delta-2" / "0000-0127.safetensors";
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('x');
  ChainMerge merge(place("2"), place("merging"), format_);
  EXPECT_FALSE(merge.wait());
  ChainMerge none(place("none"), place("other"), format_);
  EXPECT_FALSE(none.wait());
}

}  // namespace
}  // namespace paddle::train
