#include "train/tables/chain_merge.h"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tables/merged_rows.h"

namespace paddle::train {

namespace fs = std::filesystem;

namespace {

/// Links of files that are never changed, so that those of the checkpoint may be removed.
void link_files(const fs::path& from, const fs::path& to) {
  constexpr auto kLinks = fs::copy_options::recursive | fs::copy_options::create_hard_links;
  std::error_code error;
  fs::copy(from, to, kLinks, error);
  if (!error) return;
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

bool merge(const std::string& from, const std::string& to, const tables::TableFormat& format,
           const std::atomic<bool>& stops) {
  const tables::SavedChain chain = tables::read_chain(from);
  const int64_t step = chain.delta_steps.empty() ? chain.base_step : chain.delta_steps.back();
  std::vector<std::string> parts;
  // Deltas that follow must have the same files.
  for (const std::pair<int, int>& shards : chain.shards) {
    if (stops) return false;
    const auto rows = tables::read_segments(from, format, shards, false);
    parts.push_back(tables::write_segments(
        to, format,
        [&](std::pair<int, int> range, const auto& write) {
          write(tables::records_of(format, rows, range));
        },
        shards, step));
  }
  tables::write_manifest(to, format, step, parts);
  return true;
}

}  // namespace

ChainMerge::ChainMerge(const std::string& from, const std::string& folder,
                       tables::TableFormat format)
    : folder_(folder) {
  const std::string links = (fs::path(folder) / "from").string();
  try {
    fs::remove_all(folder);
    fs::create_directories(folder);
    link_files(from, links);
  } catch (const fs::filesystem_error&) {
    std::promise<bool> failed;
    failed.set_value(false);
    done_ = failed.get_future();
    return;
  }
  done_ = std::async(std::launch::async, [this, links, format = std::move(format)] {
    try {
      return merge(links, base(), format, stops_);
    } catch (const std::exception&) {
      return false;  // the whole table is written then
    }
  });
}

ChainMerge::~ChainMerge() {
  stops_ = true;
  done_.wait();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

bool ChainMerge::is_over() const {
  return done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::string ChainMerge::base() const { return (fs::path(folder_) / "base").string(); }

}  // namespace paddle::train
