// A stand-in for libnvrtc.so.13 that compiles device code for the CPU, with the system's compiler
// and emulation.h. The "machine code" is a shared library after a line that names the architecture;
// the stand-in for the driver (fake_driver.cc) opens it.
//
// PADDLE_FAKE_CUDA_CHECK=address, undefined or race compiles checks into kernels, which end the
// process at the first problem; address needs the compiler's library in LD_PRELOAD. Programs are
// then not to be kept for other runs. PADDLE_FAKE_CUDA_EDIT="from=>to" replaces a piece of their
// text, to plant a fault.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct FakeProgram {
  std::string text, image, log;
};

constexpr int kArchitectures[] = {75, 80, 86, 89, 90, 100, 103, 120};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

/// A file in memory, so that none stays when the process is killed. The compiler, a child, opens it
/// by its path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content = "") : file_(memfd_create("paddle-nvrtc", 0)) {
    std::ofstream(path()) << content;
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

int run_compiler(const std::string& command) { return std::system(command.c_str()); }

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// Options of the compiler for the checks that are asked for.
std::string check_options() {
  const std::string check = variable("PADDLE_FAKE_CUDA_CHECK");
  if (check == "address") return "-g1 -fsanitize=address --param asan-stack=0 ";
  if (check == "undefined")
    return "-g1 -fsanitize=undefined -fno-sanitize=float-divide-by-zero -fno-sanitize-recover=all ";
  // Its own library is not linked: race_check.h has the functions.
  if (check == "race") return "-g1 -fsanitize=thread -nodefaultlibs -DPADDLE_RACE_CHECK ";
  return "";
}

std::string edited(std::string text) {
  const std::string edit = variable("PADDLE_FAKE_CUDA_EDIT");
  const size_t arrow = edit.find("=>");
  if (arrow == std::string::npos) return text;
  const std::string from = edit.substr(0, arrow);
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
    text.replace(at, from.size(), edit.substr(arrow + 2));
  return text;
}

/// The folder of a compiled copy of emulation.h, next to which it is made once; "" without it.
std::string header_folder() {
  static const std::string folder = [] {
    const std::string made = PADDLE_FAKE_CUDA_FOLDER "/header";
    mkdir(made.c_str(), 0777);
    const int lock = open((made + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (lock < 0) return std::string();
    flock(lock, LOCK_EX);
    const std::string copy = made + "/emulation.h";
    const std::string source = content_of(PADDLE_EMULATION_HEADER);
    if (content_of(copy) != source || access((copy + ".gch").c_str(), R_OK) != 0) {
      std::ofstream(copy) << source;
      const std::string command = std::string(PADDLE_COMPILER) +
                                  " -x c++-header -std=c++17 -O1 -fPIC -w -ffp-contract=off "
                                  "-fvisibility=hidden " +
                                  copy + " -o " + copy + ".gch 2> /dev/null";
      if (run_compiler(command) != 0) unlink((copy + ".gch").c_str());
    }
    close(lock);
    return made;
  }();
  return folder;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 99;
  return 0;
}
EXPORT const char* nvrtcGetErrorString(int result) {
  return result == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}
EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kArchitectures));
  return 0;
}
EXPORT int nvrtcGetSupportedArchs(int* architectures) {
  std::memcpy(architectures, kArchitectures, sizeof kArchitectures);
  return 0;
}
EXPORT int nvrtcCreateProgram(FakeProgram** program, const char* text, const char*, int,
                              const char* const*, const char* const*) {
  *program = new FakeProgram{text, {}, {}};
  return 0;
}
EXPORT int nvrtcDestroyProgram(FakeProgram** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
EXPORT int nvrtcCompileProgram(FakeProgram* program, int count, const char* const* options) {
  std::string architecture;
  for (int i = 0; i < count; ++i)
    if (std::strncmp(options[i], "--gpu-architecture=", 19) == 0) architecture = options[i] + 19;
  if (const char* const kept = std::getenv("PADDLE_FAKE_CUDA_SOURCES"))
    std::ofstream(std::string(kept) + "/" +
                  std::to_string(std::hash<std::string>()(program->text)) + ".cu")
        << program->text;
  const MemoryFile source(edited(program->text)), library, log;
  const std::string checks = check_options();
  // The compiled header is for programs without checks.
  const std::string emulation =
      checks.empty() ? header_folder() + "/emulation.h" : PADDLE_EMULATION_HEADER;
  const std::string command = std::string(PADDLE_COMPILER) +
                              " -shared -std=c++17 -O1 -fPIC -w -ffp-contract=off "
                              "-fvisibility=hidden " +
                              checks + "-include " + emulation + " -x c++ " + source.path() +
                              " -o " + library.path() + " -lm -lc 2> " + log.path();
  const int status = run_compiler(command);
  program->log = content_of(log.path());
  if (status == 0) {
    program->image = "PADDLE-FAKE-CUDA " + architecture + "\n" + content_of(library.path());
    return 0;
  }
  const size_t error = program->log.find("error:");
  if (error != std::string::npos) program->log.erase(0, program->log.rfind('\n', error) + 1);
  return 6;
}
EXPORT int nvrtcGetCUBINSize(FakeProgram* program, size_t* bytes) {
  *bytes = program->image.size();
  return 0;
}
EXPORT int nvrtcGetCUBIN(FakeProgram* program, char* image) {
  std::memcpy(image, program->image.data(), program->image.size());
  return 0;
}
EXPORT int nvrtcGetProgramLogSize(FakeProgram* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(FakeProgram* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
