// Bytes that reach a server of tables from a worker that has been admitted: as they are, or, for an
// odd first byte, as the bodies of messages with right checksums, so that lanes read them. The
// second bit of the byte makes the run an asynchronous one.

#include <algorithm>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "fuzz/fuzz_target.h"
#include "optim/optimizer_kind.h"
#include "program/memory_table.h"
#include "ps/server.h"

namespace {

using namespace paddle;

ps::Server make_server(ps::Mode mode) {
  optim::OptimizerOptions options;
  options.rule = optim::make_rule("adagrad");
  options.lr = 1;
  options.groups = {{}};
  options.groups[0].match = {"*"};
  options.groups[0].lr = 1;
  auto rule = std::make_shared<const optim::Optimizer>(std::move(options));
  ps::ServerOptions out;
  out.lanes = 2;
  out.durability = ps::Durability::kNone;
  out.updates = {.mode = mode, .staleness = 1};
  static const ScratchFolder folder;
  out.output = folder.path();
  out.open = [rule](program::TableSpec declared,
                    uint64_t seed) -> std::unique_ptr<program::RowTable> {
    declared.policy.show.emplace();
    declared.policy.entry_count = 2;
    declared.policy.unseen_days = 3;
    return std::make_unique<program::MemoryTable>(std::move(declared), rule, seed);
  };
  ps::Server server(std::move(out));
  for (const int worker : {0, 1})
    server.begin_worker({.worker = worker, .workers = 2, .session = 1, .servers = 1, .lanes = 2});
  return server;
}

/// Messages: kind, table, lane, worker, sequence and length of a body in a byte each, and the body.
std::vector<std::byte> framed(std::span<const std::byte> bytes) {
  constexpr size_t kHeader = 6;
  std::vector<std::byte> out;
  while (bytes.size() >= kHeader) {
    const auto number = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
    ps::Message message;
    message.kind = static_cast<ps::Kind>(1 + number(0) % static_cast<uint32_t>(ps::kLastKind));
    message.table = number(1) % 3;
    message.lane = number(2) % 3;
    message.worker = number(3) % 2;
    message.sequence = number(4) % 4;
    const size_t length = std::min<size_t>(number(5), bytes.size() - kHeader);
    const auto body = bytes.subspan(kHeader, length);
    message.body.assign(body.begin(), body.end());
    ps::append_frames(out, message);
    bytes = bytes.subspan(kHeader + length);
  }
  return out;
}

/// False if the bytes are rejected, as a message to their sender says.
bool is_accepted(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kPeer && e.code() != ErrorCode::kConfig) throw;
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const bool is_framed = data[0] % 2 != 0;
  const std::vector<std::byte> frames = is_framed ? framed(bytes) : std::vector<std::byte>();
  if (is_framed) bytes = frames;
  ps::Server server = make_server(data[0] & 2 ? ps::Mode::kAsync : ps::Mode::kSync);
  // A table, so that messages are about one.
  const program::TableSpec spec{.path = "t",
                                .width = 2,
                                .dtype = DType::kF32,
                                .init = lang::Initializer::constant(1),
                                .key = DType::kU64};
  ps::Lane::Answers answers;
  for (const uint32_t lane : {0u, 1u})
    server.take({.kind = ps::Kind::kOpen, .lane = lane, .body = ps::declaration_of(spec, 1, {})},
                answers);
  ps::FrameReader reader(size_t{1} << 20);
  reader.add(bytes);
  fuzz::expect_documented_end([&] {
    std::optional<ps::Message> message;
    while (is_accepted([&] { message = reader.next(); }) && message) {
      // A message that is rejected ends its connection only.
      is_accepted([&] { server.take(std::move(*message), answers); });
      answers.clear();
    }
  });
  return 0;
}
