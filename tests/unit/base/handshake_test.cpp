// Keyed hashes against published vectors, and what a proof is valid for.
#include "src/base/handshake.h"

#include <gtest/gtest.h>

#include "src/base/hash.h"

namespace shmemctl {
namespace {

template <class Bytes>
std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes)
    for (const int shift : {4, 0})
      text += "0123456789abcdef"[byte >> shift & 15];
  return text;
}

// FIPS 180-4's examples (NIST), and RFC 6234's million times "a".
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, test cases 1, 2 and 6 (a key that is longer than a block).
TEST(HmacSha256, PublishedVectors) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// RFC 7914, section 11: the first 32 of 64 bytes.
TEST(Pbkdf2Sha256, PublishedVectors) {
  EXPECT_EQ(hex(pbkdf2_sha256("passwd", "salt", 1)),
            "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc");
  EXPECT_EQ(hex(pbkdf2_sha256("Password", "NaCl", 80000)),
            "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56");
}

constexpr Secret one_secret = {1, 2, 3};

/// A proof must be valid only for the connection, message and direction that it was made for.
TEST(HandshakeProof, HoldsForOneSecretConnectionRoleAndMessage) {
  const Handshake handshake{{1}, {2}};
  const Proof proof = handshake.prove(one_secret, "join", "PE 3");
  EXPECT_TRUE(same_proof(proof, handshake.prove(one_secret, "join", "PE 3")));
  EXPECT_FALSE(same_proof(proof, handshake.prove({1, 2, 4}, "join", "PE 3")));
  EXPECT_FALSE(same_proof(proof, Handshake{{1}, {3}}.prove(one_secret, "join", "PE 3")));
  EXPECT_FALSE(same_proof(proof, Handshake{{3}, {2}}.prove(one_secret, "join", "PE 3")));
  EXPECT_FALSE(same_proof(proof, Handshake{{2}, {1}}.prove(one_secret, "join", "PE 3")));
  EXPECT_FALSE(same_proof(proof, handshake.prove(one_secret, "hello", "PE 3")));
  EXPECT_FALSE(same_proof(proof, handshake.prove(one_secret, "join", "PE 4")));
}

TEST(DerivedSecrets, DependOnAllInputs) {
  EXPECT_EQ(derive_secret(one_secret, "a", "bc"), derive_secret(one_secret, "a", "bc"));
  EXPECT_NE(derive_secret(one_secret, "a", "bc"), derive_secret(one_secret, "ab", "c"));
  EXPECT_NE(derive_secret(one_secret, "a", "bc"), derive_secret({1}, "a", "bc"));
  EXPECT_EQ(secret_of_password("open sesame", "5000"), secret_of_password("open sesame", "5000"));
  EXPECT_NE(secret_of_password("open sesame", "5000"), secret_of_password("open barley", "5000"));
  EXPECT_NE(secret_of_password("open sesame", "5000"), secret_of_password("open sesame", "5001"));
}

} // namespace
} // namespace shmemctl
