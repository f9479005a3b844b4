// Bytes as the file of a lane with the order of its messages, or, for an odd first byte, as entries
// that a log writes with right checksums. The other bits of the byte are the step at which a replay
// ends.

#include <cstring>
#include <filesystem>

#include "fuzz/fuzz_target.h"
#include "ps/order_log.h"

namespace {

using namespace paddle;

constexpr ps::OrderHeader kHeader{.start = 0, .lane = 0, .lanes = 1, .workers = 2, .session = 7};

void write_entries(const std::string& folder, std::span<const uint8_t> bytes) {
  ps::OrderLog log = ps::OrderLog::create(folder, kHeader);
  log.fence(0);
  for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), sizeof bits);
    const auto kind = static_cast<ps::OrderKind>(1 + bits % 8);
    const ps::OrderEntry entry{kind, static_cast<uint32_t>(bits >> 4 & 3), bits >> 24};
    if (kind == ps::OrderKind::kFence)
      log.fence(static_cast<int64_t>(entry.step));
    else if (kind == ps::OrderKind::kRestart)
      log.restart();
    else if (kind == ps::OrderKind::kDigest)
      log.put_digest();
    else if (kind <= ps::OrderKind::kExchange)
      log.add(entry, {});
    else
      log.end();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  const std::string file = fuzz::input_file(bytes, "lane-0");
  const std::filesystem::path folder = std::filesystem::path(file).parent_path() / "order";
  std::filesystem::create_directories(folder / "0");
  if (data[0] % 2 != 0)
    write_entries(folder.string(), bytes);
  else
    std::filesystem::copy_file(file, folder / "0" / "lane-0",
                               std::filesystem::copy_options::overwrite_existing);
  std::optional<int64_t> until;
  if (data[0] > 1) until = data[0] / 2;
  fuzz::expect_documented_end([&] {
    ps::OrderReader reader(folder.string(), 0, 0, until);
    for (; reader.next(); reader.advance()) {
      reader.expects({ps::OrderKind::kPush, 0, 1});
      reader.place();
    }
  });
  fuzz::expect_documented_end([&] { ps::OrderLog::reopen(folder.string(), kHeader); });
  return 0;
}
