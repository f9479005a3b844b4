// Streams, events and copies of a device: what is queued happens completely, once, and in the order
// that streams and events give it.

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <thread>

#include "conformance/device_objects.h"
#include "conformance/devices.h"
#include "conformance/passes.h"
#include "tensor/device_functions.h"
#include "tensor/random.h"

namespace paddle::conformance {
namespace {

using Api = paddle_device_api;

std::string check_order(const Api& api) {
  const SlowWork slow(api, 0);
  const DeviceStream stream(api, 0);
  constexpr size_t kBytes = 3000, kSteps = 200;
  const DeviceMemory memory(api, 0, kBytes), kept(api, 0, kBytes * kSteps);
  slow.queue(stream);
  for (size_t i = 0; i < kSteps; ++i) {
    stream.fill(memory.at(), static_cast<int>(i), kBytes);
    stream.on_device(kept.at(i * kBytes), memory.at(), kBytes);
  }
  const Bytes found = read_back(stream, kept.at(), kept.bytes());
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != i / kBytes)
      return str("work of one stream is not done in its order: copy ", i / kBytes, " of ", kSteps,
                 " has the bytes of step ", int{found[i]});
  return "";
}

/// Of a copy, in bytes.
struct Offsets {
  size_t to, from;
};

/// Copies of all kinds, sizes and offsets, and what is next to them.
std::string check_copies(const Api& api) {
  const DeviceStream stream(api, 0);
  constexpr size_t kMargin = 64;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{63}, size_t{64}, size_t{65},
                             size_t{1000}, size_t{4097}, size_t{65536}, (size_t{1} << 20) + 3})
    for (const Offsets& at : {Offsets{0, 0}, {1, 0}, {0, 3}, {13, 7}}) {
      const size_t to = at.to, from = at.from;
      const size_t whole = bytes + 2 * kMargin;
      const DeviceMemory a(api, 0, whole), b(api, 0, whole);
      const Bytes source = pattern(whole, bytes + to);
      Bytes on_a(whole, 1), on_b(whole, 2), host(whole, 3);
      stream.fill(a.at(), 1, whole);
      stream.fill(b.at(), 2, whole);
      stream.to_device(a.at(kMargin + to), source.data() + from, bytes);
      stream.on_device(b.at(kMargin + from), a.at(kMargin + to), bytes);
      stream.to_host(host.data() + to, b.at(kMargin + from), bytes);
      stream.synchronize();
      std::copy_n(source.data() + from, bytes, on_a.data() + kMargin + to);
      std::copy_n(source.data() + from, bytes, on_b.data() + kMargin + from);
      Bytes expected(whole, 3);
      std::copy_n(source.data() + from, bytes, expected.data() + to);
      const auto wrong = [&](const char* kind, const Bytes& found, const Bytes& wanted) {
        const std::string bad = difference(found, wanted);
        return bad.empty() ? bad
                           : str("a copy ", kind, " of ", bytes, " bytes at the offsets ", to,
                                 " and ", from, " (of ", kMargin, " more on both sides): ", bad);
      };
      std::string bad = wrong("to the device", read_back(stream, a.at(), whole), on_a);
      if (bad.empty()) bad = wrong("on the device", read_back(stream, b.at(), whole), on_b);
      if (bad.empty()) bad = wrong("to the host", host, expected);
      if (!bad.empty()) return bad;
    }
  return "";
}

std::string check_fill(const Api& api) {
  const DeviceStream stream(api, 0);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{7}, size_t{256}, size_t{100001}})
    for (const size_t offset : {size_t{0}, size_t{5}})
      for (const int byte : {0, 1, 0x80, 0xFF}) {
        const size_t whole = bytes + 2 * offset + 100;
        const DeviceMemory memory(api, 0, whole);
        stream.fill(memory.at(), 3, whole);
        stream.fill(memory.at(offset), byte, bytes);
        Bytes expected(whole, 3);
        std::fill_n(expected.data() + offset, bytes, static_cast<uint8_t>(byte));
        if (std::string bad = difference(read_back(stream, memory.at(), whole), expected);
            !bad.empty())
          return str("fill of ", bytes, " bytes with ", byte, " at the offset ", offset, ": ", bad);
      }
  return "";
}

/// Host memory belongs to the caller again once the copy is done.
std::string check_host_memory(const Api& api, size_t bytes) {
  const DeviceStream stream(api, 0);
  const DeviceMemory memory(api, 0, bytes), other(api, 0, bytes);
  Bytes host = pattern(bytes, 1), result(bytes, 9);
  stream.to_device(memory.at(), host.data(), bytes);
  stream.synchronize();
  std::ranges::fill(host, uint8_t{77});
  stream.fill(other.at(), 5, bytes);
  if (std::string bad = difference(read_back(stream, memory.at(), bytes), pattern(bytes, 1));
      !bad.empty())
    return str("host memory of ", bytes, " bytes is read after its copy was done: ", bad);
  stream.to_host(result.data(), memory.at(), bytes);
  stream.synchronize();
  std::ranges::fill(result, uint8_t{66});
  stream.fill(memory.at(), 1, bytes);
  stream.synchronize();
  return result == Bytes(bytes, 66)
             ? ""
             : str("host memory of ", bytes, " bytes is written after its copy was done");
}

std::string check_synchronize(const Api& api) {
  const SlowWork slow(api, 0);
  for (int round = 0; round < 3; ++round) {
    const DeviceStream stream(api, 0);
    const DeviceMemory memory(api, 0, 1000);
    Bytes host(1000, 0);
    slow.queue(stream);
    stream.fill(memory.at(), 4, 1000);
    stream.to_host(host.data(), memory.at(), 1000);
    stream.synchronize();
    if (host != Bytes(1000, 4)) return "synchronize_stream returns before the work is done";
  }
  return "";
}

/// Two streams, on these devices; the second waits for what the first does after slow work.
std::string check_wait(const Api& api, int first_device, int second_device, bool warm) {
  const SlowWork slow(api, first_device);
  const DeviceStream first(api, first_device), second(api, second_device);
  const DeviceEvent event(api, first_device);
  const DeviceMemory memory(api, first_device, 1000), copy(api, second_device, 1000);
  first.fill(memory.at(), 1, 1000);
  if (warm) event.record(first);
  first.synchronize();
  slow.queue(first);
  first.fill(memory.at(), 2, 1000);
  event.record(first);
  event.wait(second);
  if (first_device == second_device)
    second.on_device(copy.at(), memory.at(), 1000);
  else
    must(api,
         api.copy_peer(second.get(), copy.at(), second_device, memory.at(), first_device, 1000),
         "copy_peer");
  const Bytes found = read_back(second, copy.at(), 1000);
  first.synchronize();
  return found == Bytes(1000, 2)
             ? ""
             : "a stream that waits for an event continues before the work in front of its record";
}

/// Who waited for the first record does so although the event is recorded again.
std::string check_event_again(const Api& api) {
  if (std::string bad = check_wait(api, 0, 0, true); !bad.empty()) return "recorded again: " + bad;
  return returns_in_time("a stream whose event is recorded again, later on the stream itself,",
                         [&api]() -> std::string {
                           const SlowWork slow(api, 0);
                           const DeviceStream first(api, 0), second(api, 0);
                           const DeviceEvent event(api, 0);
                           const DeviceMemory memory(api, 0, 1000), copy(api, 0, 1000);
                           first.fill(memory.at(), 1, 1000);
                           first.synchronize();
                           slow.queue(second);  // so that the wait is reached late
                           slow.queue(first);
                           first.fill(memory.at(), 2, 1000);
                           event.record(first);
                           event.wait(second);
                           second.on_device(copy.at(), memory.at(), 1000);
                           event.record(second);
                           const Bytes found = read_back(second, copy.at(), 1000);
                           first.synchronize();
                           return found == Bytes(1000, 2)
                                      ? ""
                                      : "a wait forgets its record once the event has another";
                         });
}

std::string check_event_unrecorded(const Api& api) {
  return returns_in_time("a wait for an event that was never recorded", [&api]() -> std::string {
    const DeviceStream stream(api, 0);
    const DeviceEvent event(api, 0);
    const DeviceMemory memory(api, 0, 10);
    event.synchronize();
    event.wait(stream);
    stream.fill(memory.at(), 6, 10);
    return read_back(stream, memory.at(), 10) == Bytes(10, 6)
               ? ""
               : "a wait for an event that was never recorded loses work";
  });
}

/// The host waits for an event.
std::string check_event_of_host(const Api& api) {
  const SlowWork slow(api, 0);
  const DeviceStream stream(api, 0);
  const DeviceEvent event(api, 0);
  const DeviceMemory memory(api, 0, 1000);
  Bytes host(1000, 0);
  slow.queue(stream);
  stream.fill(memory.at(), 8, 1000);
  stream.to_host(host.data(), memory.at(), 1000);
  event.record(stream);
  event.synchronize();
  const bool done = host == Bytes(1000, 8);
  stream.synchronize();
  return done ? "" : "synchronize_event returns before the work in front of its record is done";
}

std::string check_event_of_device(const Api& api, int count) {
  if (count < 2 || !api.copy_peer) return str(kSkip, "it has one device, or no copy_peer");
  return check_wait(api, 0, 1, false);
}

/// Each of two streams waits for what the other did before.
std::string check_crosswise(const Api& api) {
  return returns_in_time("one of two streams that wait for each other's earlier work",
                         [&api]() -> std::string {
                           const DeviceStream a(api, 0), b(api, 0);
                           const DeviceEvent of_a(api, 0), of_b(api, 0);
                           const DeviceMemory x(api, 0, 100), y(api, 0, 100);
                           a.fill(x.at(), 1, 100);
                           b.fill(y.at(), 2, 100);
                           of_a.record(a);
                           of_b.record(b);
                           of_a.wait(b);
                           of_b.wait(a);
                           a.on_device(x.at(50), y.at(), 50);
                           b.on_device(y.at(50), x.at(), 50);
                           const Bytes in_x = read_back(a, x.at(), 100);
                           const Bytes in_y = read_back(b, y.at(), 100);
                           return in_x[60] == 2 && in_y[60] == 1 ? "" : "the copies are wrong";
                         });
}

/// Eight threads with a stream each.
std::string check_threads(const Api& api, bool quick) {
  constexpr size_t kThreads = 8;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      try {
        const DeviceStream stream(api, 0);
        const Random random(thread, 3);
        for (uint64_t i = 0; i < (quick ? 50u : 400u) && wrong[thread].empty(); ++i) {
          const size_t bytes = 1 + random.below(i, 20000);
          const DeviceMemory a(api, 0, bytes), b(api, 0, bytes);
          const Bytes content = pattern(bytes, i + thread);
          stream.to_device(a.at(), content.data(), bytes);
          stream.on_device(b.at(), a.at(), bytes);
          wrong[thread] = difference(read_back(stream, b.at(), bytes), content);
        }
      } catch (const std::exception& e) {
        wrong[thread] = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& bad : wrong)
    if (!bad.empty()) return "when several threads use the device: " + bad;
  return "";
}

std::string check_peers(const Api& api, int count) {
  if (count < 2 || !api.copy_peer) return str(kSkip, "it has one device, or no copy_peer");
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{70001}}) {
    const DeviceStream here(api, 0), there(api, 1);
    const DeviceMemory a(api, 0, bytes), b(api, 1, bytes);
    const Bytes content = pattern(bytes, 5);
    here.to_device(a.at(), content.data(), bytes);
    must(api, api.copy_peer(here.get(), b.at(), 1, a.at(), 0, bytes), "copy_peer");
    here.fill(a.at(), 0, bytes);
    here.synchronize();
    if (std::string bad = difference(read_back(there, b.at(), bytes), content); !bad.empty())
      return "copy_peer: " + bad;
    must(api, api.copy_peer(there.get(), a.at(), 0, b.at(), 1, bytes), "copy_peer");
    there.synchronize();
    if (std::string bad = difference(read_back(here, a.at(), bytes), content); !bad.empty())
      return "copy_peer on a stream of the source: " + bad;
  }
  return "";
}

std::string check_clock(const Api& api) {
  if (!api.create_timing_event) return str(kSkip, "its events have no clock");
  const SlowWork slow(api, 0);
  const DeviceStream stream(api, 0);
  paddle_event begin = nullptr, end = nullptr;
  must(api, api.create_timing_event(0, &begin), "create_timing_event");
  must(api, api.create_timing_event(0, &end), "create_timing_event");
  must(api, api.record_event(begin, stream.get()), "record_event");
  slow.queue(stream);
  must(api, api.record_event(end, stream.get()), "record_event");
  must(api, api.synchronize_event(end), "synchronize_event");
  int reached = 0;
  double seconds = 0;
  must(api, api.query_event(end, &reached), "query_event");
  must(api, api.elapsed(begin, end, &seconds), "elapsed");
  double back = 0;
  must(api, api.elapsed(end, begin, &back), "elapsed");
  api.destroy_event(begin);
  api.destroy_event(end);
  if (reached != 1) return "query_event: an event that was waited for is not reached";
  if (!(seconds > 0 && seconds < 600)) return str("elapsed: work takes ", seconds, " seconds");
  if (back > -seconds / 2) return "elapsed: with the events swapped it is not negative";
  return "";
}

/// Recorded work runs with each launch, and not before.
std::string check_graphs(const Api& api) {
  if (!api.begin_capture) return str(kSkip, "it cannot record work");
  const DeviceStream stream(api, 0);
  const DeviceMemory a(api, 0, 1000), b(api, 0, 1000);
  stream.fill(a.at(), 1, 1000);
  stream.fill(b.at(), 1, 1000);
  stream.synchronize();
  paddle_graph graph = nullptr;
  must(api, api.begin_capture(stream.get()), "begin_capture");
  stream.on_device(b.at(), a.at(), 1000);
  stream.fill(a.at(), 7, 1000);
  must(api, api.end_capture(stream.get(), &graph), "end_capture");
  if (read_back(stream, a.at(), 1000) != Bytes(1000, 1)) return "work that is recorded runs, too";
  must(api, api.launch_graph(graph, stream.get()), "launch_graph");
  must(api, api.launch_graph(graph, stream.get()), "launch_graph");
  must(api, api.destroy_graph(graph), "destroy_graph");
  if (read_back(stream, a.at(), 1000) != Bytes(1000, 7) ||
      read_back(stream, b.at(), 1000) != Bytes(1000, 7))
    return "recorded work that is queued twice gives other bytes";
  return "";
}

/// Many streams and events, one after another.
std::string check_objects(const Api& api, bool quick) {
  return returns_in_time("making and destroying streams and events", [&api, quick]() {
    const DeviceMemory memory(api, 0, 100);
    for (int i = 0; i < (quick ? 200 : 3000); ++i) {
      const DeviceStream a(api, 0), b(api, 0);
      const DeviceEvent event(api, 0);
      a.fill(memory.at(), i % 256, 100);
      event.record(a);
      event.wait(b);
      if (read_back(b, memory.at(), 100) != Bytes(100, static_cast<uint8_t>(i % 256)))
        return str("streams of round ", i, " give other bytes");
    }
    return std::string();
  });
}

/// A random program of copies and fills on several streams, ordered by events where one step needs
/// what another did. Its result is that of the steps one after another.
std::string run_schedule(const Api& api, const DeviceMemory& memory, uint64_t seed) {
  constexpr size_t kBlocks = 6, kBytes = 4096, kStreams = 4;
  RandomSequence random(Random(seed, 11));
  const size_t stream_count = 1 + random.below(kStreams);
  std::vector<std::unique_ptr<DeviceStream>> streams;
  for (size_t i = 0; i < stream_count; ++i)
    streams.push_back(std::make_unique<DeviceStream>(api, 0));
  std::vector<Bytes> expected(kBlocks, Bytes(kBytes, 0));
  const auto block = [&](size_t i) { return memory.at(i * kBytes); };
  streams[0]->fill(memory.at(), 0, kBlocks * kBytes);
  streams[0]->synchronize();
  // Who wrote a block last, and who has read it since: a stream and an event that it recorded.
  using Access = std::pair<size_t, std::shared_ptr<DeviceEvent>>;
  std::array<std::optional<Access>, kBlocks> writer;
  std::array<std::vector<Access>, kBlocks> readers;
  std::vector<std::shared_ptr<Bytes>> kept;  // host memory of queued copies
  const auto after = [&](size_t stream, const Access& access) {
    if (access.first != stream) access.second->wait(*streams[stream]);
  };
  for (size_t step = 0, steps = 10 + random.below(30); step < steps; ++step) {
    const size_t stream = random.below(stream_count);
    const size_t to = random.below(kBlocks);
    const size_t from = (to + 1 + random.below(kBlocks - 1)) % kBlocks;
    const size_t kind = random.below(3);
    if (writer[to]) after(stream, *writer[to]);
    for (const Access& reader : readers[to]) after(stream, reader);
    if (kind == 0 && writer[from]) after(stream, *writer[from]);
    const DeviceStream& s = *streams[stream];
    if (kind == 0) {
      s.on_device(block(to), block(from), kBytes);
      expected[to] = expected[from];
    } else if (kind == 1) {
      const size_t offset = random.below(kBytes), bytes = random.below(kBytes - offset + 1);
      const auto byte = static_cast<uint8_t>(random.below(256));
      s.fill(block(to) + offset, byte, bytes);
      std::fill_n(expected[to].data() + offset, bytes, byte);
    } else {
      kept.push_back(std::make_shared<Bytes>(pattern(kBytes, seed + step)));
      s.to_device(block(to), kept.back()->data(), kBytes);
      expected[to] = *kept.back();
    }
    const auto event = std::make_shared<DeviceEvent>(api, 0);
    event->record(s);
    writer[to] = {stream, event};
    readers[to].clear();
    if (kind == 0) readers[from].emplace_back(stream, event);
  }
  for (const auto& stream : streams) stream->synchronize();
  for (size_t i = 0; i < kBlocks; ++i)
    if (std::string bad = difference(read_back(*streams[0], block(i), kBytes), expected[i]);
        !bad.empty())
      return str("the program of seed ", seed, ", on ", stream_count,
                 " streams, gives another result than its steps one after another: block ", i, ", ",
                 bad);
  return "";
}

std::string check_schedules(const Api& api, const Extent& extent) {
  const uint64_t parts = extent.quick ? 1 : 20, programs = extent.quick ? 150 : 1000;
  for (uint64_t part = 0; part < parts; ++part) {
    const uint64_t seed = extent.seed * 100000 + part * programs;
    std::string bad = returns_in_time(
        "a random program of copies on several streams", [&api, seed, programs]() -> std::string {
          const DeviceMemory memory(api, 0, size_t{6} * 4096);
          for (uint64_t i = 0; i < programs; ++i)
            if (std::string wrong = run_schedule(api, memory, seed + i); !wrong.empty())
              return wrong;
          return "";
        });
    if (!bad.empty()) return bad;
  }
  return "";
}

}  // namespace

std::string check_device_streams(const std::string& name, const std::string& check,
                                 const Extent& extent) {
  const Api& api = device_api(parse_device(name));
  const int count = api.device_count();
  if (check == "order") return check_order(api);
  if (check == "copies") return check_copies(api);
  if (check == "fill") return check_fill(api);
  if (check == "host_memory") {
    // Devices copy small and large memory in other ways.
    std::string bad;
    for (const size_t bytes : {size_t{1000}, size_t{100000}, size_t{3} << 20, size_t{20} << 20})
      if (bad.empty()) bad = check_host_memory(api, bytes);
    return bad;
  }
  if (check == "synchronize") return check_synchronize(api);
  if (check == "events") return check_wait(api, 0, 0, false);
  if (check == "event_again") return check_event_again(api);
  if (check == "event_unrecorded") return check_event_unrecorded(api);
  if (check == "event_of_host") return check_event_of_host(api);
  if (check == "event_of_device") return check_event_of_device(api, count);
  if (check == "crosswise") return check_crosswise(api);
  if (check == "threads") return check_threads(api, extent.quick);
  if (check == "peers") return check_peers(api, count);
  if (check == "clock") return check_clock(api);
  if (check == "graphs") return check_graphs(api);
  if (check == "objects") return check_objects(api, extent.quick);
  if (check == "random") return check_schedules(api, extent);
  fail(ErrorCode::kUsage, "there is no check '", check, "' of devices");
}

}  // namespace paddle::conformance
