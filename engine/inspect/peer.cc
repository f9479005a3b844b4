#include "inspect/peer.h"

#include <fmt/core.h>

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/parallel.h"
#include "inspect/bench.h"
#include "inspect/op_call.h"

extern char** environ;

namespace paddle::inspect {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxAnswer = 1 << 16;

/// Reads calls as JSON lines from standard input and answers each with its median time.
constexpr const char* kScript = R"py(
import json, sys, time
out = sys.stdout
try:
    import torch
    import torch.nn.functional as F
except Exception as error:
    print(json.dumps({"error": "torch cannot be imported: %s" % error}), flush=True)
    sys.exit(0)
torch.set_grad_enabled(False)

def tensor(spec):
    dtype = getattr(torch, spec["dtype"])
    shape = spec["shape"]
    if "values" in spec:
        return torch.tensor(spec["values"], dtype=dtype).reshape(shape)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape) > 0
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype)
    if not dtype.is_floating_point:
        return torch.randint(int(spec["low"]), int(spec["high"]) + 1, shape, dtype=dtype)
    if spec["uniform"]:
        return (torch.rand(shape) * (spec["high"] - spec["low"]) + spec["low"]).to(dtype)
    return torch.randn(shape).to(dtype)

def lstm_of(inputs):
    w = inputs["weights"]
    layer = torch.nn.LSTM(w[0].shape[1], w[0].shape[0] // 4, batch_first=True)
    return lambda x: layer(x)

print(json.dumps({"version": torch.__version__}), flush=True)
for line in sys.stdin:
    call = json.loads(line)
    try:
        torch.set_num_threads(call["threads"])
        names = {}
        for name, specs in call["inputs"].items():
            tensors = [tensor(s) for s in specs["tensors"]]
            names[name] = tensors if specs["list"] else tensors[0]
        scope = {"torch": torch, "F": F, **names}
        if "weights" in names:
            scope["lstm"] = lstm_of(names)
        run = eval("lambda: " + call["expression"], scope)
        begin = time.perf_counter()
        times = []
        while len(times) < 5 or time.perf_counter() - begin < call["seconds"]:
            start = time.perf_counter()
            run()
            if time.perf_counter() - begin > call["seconds"] / 10 or len(times) > 0:
                times.append(time.perf_counter() - start)
        times.sort()
        print(json.dumps({"ms": times[len(times) // 2] * 1e3}), flush=True)
    except Exception as error:
        print(json.dumps({"error": str(error).splitlines()[0][:300]}), flush=True)
)py";

/// A Python process that answers lines with lines.
class Peer {
 public:
  explicit Peer(const std::string& python) {
    if (python.empty())
      fail(ErrorCode::kUsage,
           "--peer torch needs an interpreter with torch: give --python or set PADDLE_PYTHON");
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      fail(ErrorCode::kDevice, "socketpair: ", std::strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    const char* arguments[] = {python.c_str(), "-c", kScript, nullptr};
    const int status = ::posix_spawnp(&pid_, python.c_str(), &actions, nullptr,
                                      const_cast<char* const*>(arguments), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    socket_ = ends[0];
    if (status != 0) {
      pid_ = -1;
      ::close(socket_);
      fail(ErrorCode::kUsage, "--python: '", python, "' cannot be run: ", std::strerror(status));
    }
    const Json first = answer();
    if (first.contains("error"))
      fail(ErrorCode::kUsage, "--python: '", python, "': ", first["error"].get<std::string>());
    version_ = first.value("version", "");
  }
  ~Peer() {
    if (socket_ >= 0) ::close(socket_);
    if (pid_ > 0) {
      ::kill(pid_, SIGTERM);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& version() const { return version_; }

  Json ask(const Json& question) {
    const std::string line = question.dump() + "\n";
    for (size_t done = 0; done < line.size();) {
      const ssize_t n = ::send(socket_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail(ErrorCode::kDevice, "the Python process ended: ", std::strerror(errno));
      done += static_cast<size_t>(n);
    }
    return answer();
  }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
  std::string buffer_, version_;

  Json answer() {
    size_t end;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      char bytes[4096];
      const ssize_t n = ::read(socket_, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || buffer_.size() > kMaxAnswer)
        fail(ErrorCode::kDevice, "the Python process ended without a response");
      buffer_.append(bytes, static_cast<size_t>(n));
    }
    const Json out = Json::parse(buffer_.substr(0, end), nullptr, false);
    buffer_.erase(0, end + 1);
    if (!out.is_object())
      fail(ErrorCode::kDevice, "the Python process did not return a JSON object");
    return out;
  }
};

Json spec_of(const Array& a, bool uniform) {
  Json out = {{"dtype", text(a.dtype)}, {"shape", a.shape}, {"uniform", uniform}};
  if (a.size() <= 64) {
    std::vector<double> values;
    for (int64_t i = 0; i < a.size() && !is_complex(a.dtype); ++i) values.push_back(a.number(i));
    if (!is_complex(a.dtype)) out["values"] = values;
    return out;
  }
  if (is_complex(a.dtype) || is_bool(a.dtype)) return out;
  double low = INFINITY, high = -INFINITY;
  // Every element of a large array is not needed to know its range.
  const int64_t stride = std::max<int64_t>(1, a.size() / 4096);
  for (int64_t i = 0; i < a.size(); i += stride) {
    low = std::min(low, a.number(i));
    high = std::max(high, a.number(i));
  }
  out["low"] = low;
  out["high"] = high;
  return out;
}

Json question_of(const PeerCall& call, const NamedCall& own, double seconds) {
  Json inputs = Json::object();
  for (const std::string& word : split(call.words, ' ')) {
    const std::string name = word.substr(0, word.find('='));
    if (!own.has_tensors(name)) continue;
    const bool uniform = word.find('{') != std::string::npos;
    Json tensors = Json::array();
    for (const size_t i : own.positions(name)) tensors.push_back(spec_of(own.inputs()[i], uniform));
    inputs[name] = {{"tensors", tensors}, {"list", word[word.find('=') + 1] == '['}};
  }
  return {{"inputs", inputs},
          {"expression", call.expression},
          {"seconds", seconds},
          {"threads", thread_count()}};
}

}  // namespace

std::vector<PeerResult> bench_beside_torch(const PeerOptions& options,
                                           const std::function<void(const PeerResult&)>& report) {
  std::regex pattern;
  try {
    pattern = std::regex(options.filter);
  } catch (const std::regex_error&) {
    fail(ErrorCode::kUsage, "--filter: '", options.filter, "' is not a regular expression");
  }
  Peer peer(options.python);
  BenchOptions timing;
  timing.seconds = options.seconds;
  std::vector<PeerResult> out;
  for (const PeerCall& call : peer_calls()) {
    if (!options.filter.empty() && !std::regex_search(std::string(call.op), pattern)) continue;
    const NamedCall own = parse_call(get_op(call.op), split(call.words, ' '));
    const Json theirs = peer.ask(question_of(call, own, options.seconds));
    if (theirs.contains("error"))
      fail(ErrorCode::kDevice, call.op, ": torch: ", theirs["error"].get<std::string>());
    timing.first_result = true;
    const BenchResult ours = bench(own, timing)[0];
    out.push_back(
        {call.op, call.words, ours.median_ms, theirs.value("ms", 0.0), ours.implementation});
    report(out.back());
  }
  if (out.empty())
    fail(ErrorCode::kUsage, "no operation of the table matches '", options.filter, "'");
  return out;
}

std::string peer_version(const PeerOptions& options) {
  return str("torch ", Peer(options.python).version(), ", ", thread_count(), " threads");
}

std::string peer_head() { return str("    ours ms    torch ms   ratio  call\n"); }

std::string text(const PeerResult& r) {
  const std::string line =
      fmt::format("{:11.4f} {:11.4f} {:7.2f}  ", r.own_ms, r.peer_ms, r.ratio());
  return str(line, r.op, " ", r.call, "\n");
}

std::string summary(const std::vector<PeerResult>& results) {
  size_t slower = 0, twice = 0;
  double logs = 0;
  for (const PeerResult& r : results) {
    slower += r.ratio() > 1;
    twice += r.ratio() > 2;
    logs += std::log(r.ratio());
  }
  const std::string mean = fmt::format(
      "{:.2f}", std::exp(logs / static_cast<double>(std::max<size_t>(1, results.size()))));
  return str(results.size(), " calls: ", slower, " slower than torch, ", twice,
             " by more than 2; geometric mean of the ratios ", mean, "\n");
}

std::string page(const std::vector<PeerResult>& results, const std::string& version) {
  std::vector<PeerResult> sorted = results;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PeerResult& a, const PeerResult& b) { return a.ratio() > b.ratio(); });
  std::string out =
      "# Operations compared with PyTorch\n\nMade by `paddle op bench --peer torch --page`; "
      "float32 on "
      "the "
      "CPU unless the call says otherwise, both sides in one run (" +
      version +
      "). A ratio above 1 means that PyTorch is faster; the table begins with the largest.\n\n" +
      summary(results) + "\n| operation | call | ours, ms | PyTorch, ms | ratio | kernels |\n" +
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const PeerResult& r : sorted) {
    const std::string numbers =
        fmt::format("{:.4f} | {:.4f} | {:.2f}", r.own_ms, r.peer_ms, r.ratio());
    out += str("| `", r.op, "` | `", r.call, "` | ", numbers, " | ", r.implementation, " |\n");
  }
  return out;
}

}  // namespace paddle::inspect
