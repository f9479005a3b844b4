// Certificates of the module `crypto`.

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstring>
#include <memory>
#include <string>

#include "base/crypto_module/interface.h"

using paddle::PaddleCertificate;

namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Memory = std::unique_ptr<BIO, decltype(&BIO_free)>;

/// Clocks of machines differ.
constexpr int64_t kBeforeSeconds = 86400;

Memory reader(const char* pem) { return {BIO_new_mem_buf(pem, -1), BIO_free}; }

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  const bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

/// Copies what was written, with a zero at its end.
bool copy(const Memory& from, char* to, size_t capacity) {
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(from.get(), &text);
  if (bytes <= 0 || static_cast<size_t>(bytes) >= capacity) return false;
  std::memcpy(to, text, static_cast<size_t>(bytes));
  to[bytes] = 0;
  return true;
}

bool describe(X509* certificate, X509* issuer, const PaddleCertificate& call) {
  const std::string name = call.name, purpose = call.purpose;
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return false;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7F) | 1);
  BIGNUM* const number = BN_bin2bn(serial, sizeof serial, nullptr);
  const bool numbered =
      number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  X509_NAME* const subject = X509_get_subject_name(certificate);
  return numbered && X509_set_version(certificate, X509_VERSION_3) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kBeforeSeconds) &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), 0, static_cast<long>(call.seconds),
                          nullptr) &&
         X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
         add_extension(certificate, issuer, NID_basic_constraints,
                       purpose.empty() ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
         add_extension(certificate, issuer, NID_key_usage,
                       purpose.empty() ? "critical,keyCertSign" : "critical,digitalSignature") &&
         (purpose.empty() ||
          (add_extension(certificate, issuer, NID_ext_key_usage, purpose) &&
           add_extension(certificate, issuer, NID_subject_alt_name, "DNS:" + name)));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int paddle_make_certificate(
    const PaddleCertificate* call) {
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Certificate made(X509_new(), X509_free);
  Certificate issuer(nullptr, X509_free);
  Key issuer_key(nullptr, EVP_PKEY_free);
  if (call->issuer_certificate) {
    const Memory certificate = reader(call->issuer_certificate), of = reader(call->issuer_key);
    issuer.reset(certificate ? PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr)
                             : nullptr);
    issuer_key.reset(of ? PEM_read_bio_PrivateKey(of.get(), nullptr, nullptr, nullptr) : nullptr);
    if (!issuer || !issuer_key) return 0;
  }
  X509* const by = issuer ? issuer.get() : made.get();
  if (!key || !made || X509_set_pubkey(made.get(), key.get()) != 1 ||
      !describe(made.get(), by, *call) ||
      X509_sign(made.get(), issuer_key ? issuer_key.get() : key.get(), EVP_sha256()) <= 0)
    return 0;
  const Memory certificate_text(BIO_new(BIO_s_mem()), BIO_free);
  const Memory key_text(BIO_new(BIO_s_mem()), BIO_free);
  return certificate_text && key_text &&
                 PEM_write_bio_X509(certificate_text.get(), made.get()) == 1 &&
                 PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                          nullptr) == 1 &&
                 copy(certificate_text, call->certificate, call->capacity) &&
                 copy(key_text, call->key, call->capacity)
             ? 1
             : 0;
}
