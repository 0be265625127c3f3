// SPDX-License-Identifier: Apache-2.0
#include "source/manifest_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <string>

#include "common/status.h"
#include "source/manifest_directory.h"

namespace devmgr::source {
namespace {

using ReadingKind = FileReading::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kMax = 64;

class ManifestReaderTest : public testing::Test {
 protected:
  FileReading Read(const std::string& name,
                   const std::optional<FileSignature>& known = {}) {
    const UniqueFd fd(
        ::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return ReadManifest(fd.get(), name, known, kMax);
  }
  std::vector<std::string> Follow(const std::string& name) {
    const UniqueFd fd(
        ::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::vector<std::string> places;
    for (const FilePlace& place : FollowLinks(fd.get(), folder_.path(), name)) {
      places.push_back((place.directory / place.name).string());
    }
    return places;
  }

  ManifestDirectory folder_;
};

TEST_F(ManifestReaderTest, KnowsTheNamesOfManifests) {
  for (const char* name : {"a.yaml", "a.yml", "a.json", "a.b.yaml"}) {
    EXPECT_TRUE(IsManifestName(name)) << name;
  }
  for (const char* name : {"", ".yaml", ".a.yaml", "..data", "a.yaml~", "a",
                           "a.yaml.bak", "ayaml", "a.YAML"}) {
    EXPECT_FALSE(IsManifestName(name)) << name;
  }
}

TEST_F(ManifestReaderTest, ListsManifestsUpToTheLimit) {
  for (const char* name : {"c.yaml", "a.json", "b.yml", ".d.yaml", "notes"}) {
    folder_.Write(name, "x");
  }
  auto listing = ListManifests(folder_.path(), 3);
  ASSERT_TRUE(listing.ok());
  EXPECT_THAT(listing->names, ElementsAre("a.json", "b.yml", "c.yaml"));
  EXPECT_EQ(listing->left_out, 0u);

  listing = ListManifests(folder_.path(), 2);
  ASSERT_TRUE(listing.ok());
  EXPECT_THAT(listing->names, ElementsAre("a.json", "b.yml"));
  EXPECT_EQ(listing->left_out, 1u);
}

TEST_F(ManifestReaderTest, TellsAMissingDirectoryFromOtherTrouble) {
  EXPECT_EQ(ListManifests(folder_ / "no", 9).status().code(),
            absl::StatusCode::kNotFound);
  folder_.Write("file", "");
  const absl::Status status = ListManifests(folder_ / "file", 9).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("Not a directory"));
}

TEST_F(ManifestReaderTest, ReadsAFileOnceForEachContent) {
  folder_.Write("a.yaml", "one");
  const FileReading first = Read("a.yaml");
  ASSERT_EQ(first.kind, ReadingKind::kText);
  EXPECT_EQ(first.text, "one");

  EXPECT_EQ(Read("a.yaml", first.signature).kind, ReadingKind::kUnchanged);
  folder_.Put("a.yaml", "two");  // the same size, but another file
  const FileReading second = Read("a.yaml", first.signature);
  ASSERT_EQ(second.kind, ReadingKind::kText);
  EXPECT_EQ(second.text, "two");
}

TEST_F(ManifestReaderTest, ReadsUpToTheLimit) {
  folder_.Write("a.yaml", std::string(kMax, 'x'));
  EXPECT_EQ(Read("a.yaml").text, std::string(kMax, 'x'));
  folder_.Write("a.yaml", std::string(kMax + 1, 'x'));
  const FileReading reading = Read("a.yaml");
  EXPECT_EQ(reading.kind, ReadingKind::kUnusable);
  EXPECT_EQ(reading.problem, "65 bytes, more than the 64 that are read");
}

TEST_F(ManifestReaderTest, ReadsAnEmptyFile) {
  folder_.Write("a.yaml", "");
  const FileReading reading = Read("a.yaml");
  EXPECT_EQ(reading.kind, ReadingKind::kText);
  EXPECT_EQ(reading.text, "");
}

TEST_F(ManifestReaderTest, TellsWhatIsNotThere) {
  EXPECT_EQ(Read("a.yaml").kind, ReadingKind::kGone);
  std::filesystem::create_symlink("nowhere", folder_ / "a.yaml");
  EXPECT_EQ(Read("a.yaml").kind, ReadingKind::kDangling);
  std::filesystem::create_symlink("loop.yaml", folder_ / "loop.yaml");
  EXPECT_EQ(Read("loop.yaml").kind, ReadingKind::kFailed);
}

TEST_F(ManifestReaderTest, IgnoresDirectoriesAlsoBehindLinks) {
  std::filesystem::create_directory(folder_ / "d.yaml");
  std::filesystem::create_symlink("d.yaml", folder_ / "l.yaml");
  EXPECT_EQ(Read("d.yaml").kind, ReadingKind::kIgnored);
  EXPECT_EQ(Read("l.yaml").kind, ReadingKind::kIgnored);
}

// Opening a pipe without a writer would block for good.
TEST_F(ManifestReaderTest, DoesNotOpenWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_ / "p.yaml").c_str(), 0600), 0);
  EXPECT_EQ(Read("p.yaml").kind, ReadingKind::kUnusable);
  EXPECT_EQ(Read("p.yaml").problem, "not a regular file but a pipe");

  std::filesystem::create_symlink("/dev/zero", folder_ / "z.yaml");
  EXPECT_EQ(Read("z.yaml").problem, "not a regular file but a device");

  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder_ / "s.yaml").string();
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
            0);
  EXPECT_EQ(Read("s.yaml").problem, "not a regular file but a socket");
}

TEST_F(ManifestReaderTest, FollowsLinksHopByHop) {
  folder_.Write("plain.yaml", "x");
  EXPECT_THAT(Follow("plain.yaml"), IsEmpty());

  const std::string base = folder_.path().string();
  std::filesystem::create_symlink("..data/a.yaml", folder_ / "a.yaml");
  EXPECT_THAT(Follow("a.yaml"), ElementsAre(base + "/..data/a.yaml"));

  std::filesystem::create_symlink("plain.yaml", folder_ / "hop");
  std::filesystem::create_symlink(base + "/hop", folder_ / "b.yaml");
  EXPECT_THAT(Follow("b.yaml"),
              ElementsAre(base + "/hop", base + "/plain.yaml"));

  std::filesystem::create_symlink("loop.yaml", folder_ / "loop.yaml");
  EXPECT_EQ(Follow("loop.yaml").size(), static_cast<std::size_t>(kMaxLinks));
}

TEST_F(ManifestReaderTest, TellsNothingFromLittle) {
  for (const char* blank :
       {"", "\n", " \t\r\n", "---\n", "---\n---\n...\n", "\xef\xbb\xbf\n"}) {
    EXPECT_TRUE(IsBlank(blank)) << '"' << blank << '"';
  }
  // As a crash of the machine may leave it behind.
  EXPECT_TRUE(IsBlank(std::string_view("\0\0\0\0", 4)));
  for (const char* text :
       {"# comment", "\n\n  # comment\n", "a", "---\na: b\n", "--", "{}"}) {
    EXPECT_FALSE(IsBlank(text)) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace devmgr::source
