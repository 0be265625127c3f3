// SPDX-License-Identifier: Apache-2.0
//
// Nothing that a file holds crashes the decoder or gets half of itself
// accepted.
#include <devmgr/manifests.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "api/manifests_dir.h"
#include "support/random_lives.h"
#include "support/read_all.h"

namespace devmgr {
namespace {

const char* const kFiles[] = {"full.yaml", "kep-5004.yaml",
                              "kep-5004-pods.yaml", "list.json"};

std::string ReadFile(const std::string& name) {
  return ReadAll(std::string(DEVMGR_MANIFESTS_DIR) + "/" + name);
}

/// What holds for every outcome.
void CheckOutcome(const std::string& text, const std::string& name) {
  const DecodedManifest manifest = DecodeManifest(text, name, "n");
  if (!manifest.errors.empty()) {
    EXPECT_TRUE(manifest.objects.empty());
    EXPECT_TRUE(manifest.malformed_pods.empty());
  }
  EXPECT_LE(manifest.errors.size(), 101u);
  for (const ManifestProblem& problem : manifest.errors) {
    EXPECT_NE(problem.message, "");
    EXPECT_EQ(problem.file, name);
  }
  for (const DecodedObject& object : manifest.objects) {
    EXPECT_GT(object.line, 0);
  }
}

TEST(Robustness, AcceptsTheGoodFilesThemselves) {
  for (const char* file : kFiles) {
    const std::string text = ReadFile(file);
    ASSERT_NE(text, "") << file;
    EXPECT_TRUE(DecodeManifest(text, file, "n").errors.empty()) << file;
  }
}

TEST(Robustness, SurvivesTruncationAtEveryByte) {
  for (const char* file : kFiles) {
    const std::string text = ReadFile(file);
    for (std::size_t size = 0; size < text.size(); ++size) {
      CheckOutcome(text.substr(0, size), file);
    }
  }
}

TEST(Robustness, RefusesTruncatedJsonAtEveryByte) {
  const std::string text = ReadFile("list.json");
  const std::size_t end = text.rfind('}');
  for (std::size_t size = 1; size <= end; ++size) {
    EXPECT_FALSE(
        DecodeManifest(text.substr(0, size), "list.json", "n").errors.empty())
        << size;
  }
}

TEST(Robustness, SurvivesTheLossOfAByte) {
  // A prime, so that all columns have their turn; all bytes at larger scales.
  const std::size_t step = TestScale() > 1 ? 1 : 7;
  for (const char* file : kFiles) {
    const std::string text = ReadFile(file);
    for (std::size_t at = 0; at < text.size(); at += step) {
      CheckOutcome(text.substr(0, at) + text.substr(at + 1), file);
    }
  }
}

TEST(Robustness, SurvivesRandomDamage) {
  constexpr std::string_view kNasty =
      "{}[]:,-?&*!|>'\"%@`#~<\n\t\r \\.0e\x01\xFF";
  std::vector<std::string> texts;
  for (const char* file : kFiles) texts.push_back(ReadFile(file));
  LiveEach({5004, 1'500}, [&](Luck& luck) {
    const std::size_t which = luck.Below(texts.size());
    std::string text = texts[which];
    for (std::size_t n = 1 + luck.Below(8); n > 0; --n) {
      const std::size_t at = luck.Below(text.size());
      switch (luck.Below(3)) {
        case 0:
          text[at] = luck.Pick(kNasty);
          break;
        case 1:
          text.insert(at, 1, luck.Pick(kNasty));
          break;
        default:
          const std::size_t from = luck.Below(text.size());
          text.insert(at, text.substr(from, luck.Below(40)));
          break;
      }
    }
    CheckOutcome(text, kFiles[which]);
  });
}

TEST(Robustness, SurvivesNastyTexts) {
  for (const char* text : {"%YAML 1.2\n---\na: 1\n",
                           "%YAML 9.9\n---\n",
                           "%TAG ! x\n---\n",
                           "%\n",
                           "&a",
                           "*a",
                           "!",
                           "!<",
                           "!<tag> x",
                           "!!",
                           "? ",
                           ":",
                           "- ",
                           "-",
                           "[",
                           "]",
                           "{",
                           "}",
                           "[,]",
                           "{,}",
                           "[:]",
                           "{:}",
                           "{?",
                           "'",
                           "\"",
                           "\"\\",
                           "\"\\x",
                           R"("\uD800")",
                           R"("\U00110000")",
                           "|",
                           "|9",
                           ">-+",
                           "|\n\ta",
                           "a: b: c",
                           "a:\n b\n  c: d",
                           "---",
                           "...",
                           "--- a",
                           "--- |",
                           "@",
                           "`",
                           "%",
                           "\t",
                           "a\t: b",
                           "- - - -",
                           "?\n?\n?",
                           "{a: [}",
                           "[a: {]",
                           "#",
                           "\xEF\xBB\xBF\xEF\xBB\xBF",
                           "\xE2\x80\xA8",
                           "!!int ",
                           "!!null x",
                           "!!map x",
                           "!!seq {}",
                           "&a &b c",
                           "&a *a",
                           "*a : b",
                           "{\"",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "{}{",
                           "{}]",
                           "{} x",
                           "<<: *a",
                           "<<:",
                           "kind: &k Pod\napiVersion: *k\n"}) {
    CheckOutcome(text, "nasty.yaml");
    CheckOutcome(text, "nasty.json");
  }
}

}  // namespace
}  // namespace devmgr
