// Encrypted files: what was written is read, and nothing else is.

#include "base/encryption.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/module.h"

namespace paddle {
namespace {

constexpr const char* kDigits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

class Encryption : public testing::Test {
 protected:
  void SetUp() override {
    if (!file_exists(Module::default_path("crypto"))) GTEST_SKIP() << "built without OpenSSL";
    ensure_directory(folder_);
    setenv("PADDLE_TEST_KEY", kDigits, 1);
    setenv("PADDLE_TEST_OTHER_KEY", std::string(64, 'a').c_str(), 1);
    set_model_key("env:PADDLE_TEST_KEY");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return join_path(folder_, name); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  /// Encrypts the content to the file "e", and gives its bytes.
  std::string encrypted(const std::string& content) const {
    write("plain", content);
    encrypt_file(path("plain"), path("e"));
    std::ifstream file(path("e"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string error_of(const std::string& bytes) const {
    write("changed", bytes);
    try {
      read_file(path("changed"), 1 << 20, ErrorCode::kModel);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kModel) << e.message();
      return e.message();
    }
    return "";
  }
  const std::string folder_ =
      testing::TempDir() + "/paddle_encryption_" + std::to_string(::getpid());
};

std::string sample(size_t bytes) {
  std::string out(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 2654435761u >> 24);
  return out;
}

TEST_F(Encryption, FilesOfAllSizesAreReadAsTheyWere) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65535},
                            size_t{65536}, size_t{65537}, size_t{300000}}) {
    const std::string content = sample(size), stored = encrypted(content);
    EXPECT_TRUE(is_encrypted(stored));
    EXPECT_EQ(stored.size(), 64 + size + 16 * std::max<size_t>(1, (size + 65535) / 65536));
    EXPECT_EQ(read_file(path("e")), content) << size;
    EXPECT_EQ(MappedFile::open(path("e"))->view(), content) << size;
    EXPECT_EQ(read_beginning(path("e"), 16), content.substr(0, 16)) << size;
    if (size > 64) {
      EXPECT_EQ(stored.find(content.substr(0, 16)), std::string::npos);
    }
  }
}

TEST_F(Encryption, TheSameContentIsEncryptedInAnotherWayEachTime) {
  EXPECT_NE(encrypted("a model"), encrypted("a model"));
}

TEST_F(Encryption, EveryChangedByteIsNoticed) {
  const std::string stored = encrypted(sample(200));
  for (size_t i = 8; i < stored.size(); ++i) {  // without its magic, a file is not encrypted
    std::string changed = stored;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    EXPECT_NE(error_of(changed), "") << "byte " << i;
  }
}

TEST_F(Encryption, FilesThatWereCutOrPutTogetherAreNoticed) {
  const std::string stored = encrypted(sample(200000)), chunk(65536 + 16, 0);
  for (const size_t size : {size_t{64}, size_t{100}, 64 + chunk.size(), stored.size() - 1})
    EXPECT_NE(error_of(stored.substr(0, size)), "") << size;
  EXPECT_NE(error_of(stored + "more"), "");
  std::string exchanged = stored.substr(0, 64) + stored.substr(64 + chunk.size(), chunk.size()) +
                          stored.substr(64, chunk.size()) + stored.substr(64 + 2 * chunk.size());
  ASSERT_EQ(exchanged.size(), stored.size());
  EXPECT_NE(error_of(exchanged), "");
  // The chunks of another file of the same size.
  EXPECT_NE(error_of(stored.substr(0, 64) + encrypted(sample(200000)).substr(64)), "");
  EXPECT_EQ(error_of(stored), "");
}

TEST_F(Encryption, ALieAboutTheSizeTakesNoMemory) {
  std::string stored = encrypted("small");
  const uint64_t huge = uint64_t{1} << 60;
  stored.replace(16, 8, reinterpret_cast<const char*>(&huge), 8);
  EXPECT_NE(error_of(stored).find("was cut"), std::string::npos) << error_of(stored);
}

TEST_F(Encryption, OtherKeysAndBadSourcesAreErrors) {
  const std::string stored = encrypted("a model");
  set_model_key("env:PADDLE_TEST_OTHER_KEY");
  EXPECT_NE(error_of(stored).find("the key is another one"), std::string::npos);
  write("digits", std::string(kDigits) + "\n");
  set_model_key("file:" + path("digits"));
  EXPECT_EQ(error_of(stored), "");
  set_model_key(std::string("command:echo ") + kDigits);
  EXPECT_EQ(error_of(stored), "");
  std::string raw(32, '\0');
  for (int i = 0; i < 32; ++i) raw[static_cast<size_t>(i)] = static_cast<char>(i);
  write("raw", raw);
  set_model_key("file:" + path("raw"));
  EXPECT_EQ(error_of(stored), "");
  EXPECT_THROW(set_model_key("secret"), Error);
  EXPECT_THROW(set_model_key("file:"), Error);
  for (const std::string& source : {std::string("env:PADDLE_TEST_NO_KEY"), "file:" + path("none"),
                                    "file:" + path("plain"), std::string("command:false")}) {
    set_model_key(source);
    try {
      read_file(path("e"), 1 << 20, ErrorCode::kModel);
      FAIL() << source;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.message();
    }
  }
}

}  // namespace
}  // namespace paddle
