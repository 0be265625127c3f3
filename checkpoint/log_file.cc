// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/log_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "checkpoint/crc32c.h"

namespace devmgr::checkpoint {
namespace {

constexpr std::size_t kBlock = 32 * 1024;
constexpr std::size_t kHeader = 7;

enum Type : unsigned char {
  kWholeRecord = 1,
  kFirstPart = 2,
  kMiddlePart = 3,
  kLastPart = 4
};

class LogScanner {
 public:
  explicit LogScanner(std::string_view bytes)
      : bytes_(bytes),
        written_(bytes.find_last_not_of('\0') + 1) {}  // npos + 1 is 0

  LogContents Run() {
    while (at_ < bytes_.size()) {
      if (LeftInBlock(at_) < kHeader) {
        at_ += LeftInBlock(at_);  // Too small for a record.
      } else if (at_ >= written_) {
        break;  // Space that was allocated ahead.
      } else if (IsRecord(at_)) {
        Take(at_);
        at_ = EndOf(at_);
      } else if (!PassDamage()) {
        return std::move(contents_);
      }
    }
    if (fragment_.has_value()) Tear(fragment_->offset);
    return std::move(contents_);
  }

 private:
  /// The beginning of a payload that goes on in further records.
  struct Fragment {
    std::uint64_t offset = 0;
    std::string payload;
  };

  static std::size_t LeftInBlock(std::size_t at) {
    return kBlock - at % kBlock;
  }
  std::uint32_t Byte(std::size_t at) const {
    return static_cast<unsigned char>(bytes_[at]);
  }
  // Of the record at `at`, whose header is there.
  std::uint32_t ChecksumAt(std::size_t at) const {
    return Byte(at) | Byte(at + 1) << 8 | Byte(at + 2) << 16 |
           Byte(at + 3) << 24;
  }
  std::size_t LengthAt(std::size_t at) const {
    return Byte(at + 4) | Byte(at + 5) << 8;
  }
  std::uint32_t TypeAt(std::size_t at) const { return Byte(at + 6); }
  std::size_t EndOf(std::size_t at) const {
    return at + kHeader + LengthAt(at);
  }

  bool HasHeader(std::size_t at) const { return at + kHeader <= bytes_.size(); }
  bool FitsItsBlock(std::size_t at) const {
    return kHeader + LengthAt(at) <= LeftInBlock(at);
  }

  /// A record with the right checksum.
  bool IsRecord(std::size_t at) const {
    if (!HasHeader(at) || !FitsItsBlock(at) || EndOf(at) > bytes_.size()) {
      return false;
    }
    // The type belongs to what is checked.
    const std::string_view checked =
        bytes_.substr(at + kHeader - 1, 1 + LengthAt(at));
    return MaskCrc32c(Crc32c(checked)) == ChecksumAt(at);
  }

  void Take(std::size_t at) {
    const std::string_view payload = bytes_.substr(at + kHeader, LengthAt(at));
    const std::uint32_t type = TypeAt(at);
    const bool begins = type == kWholeRecord || type == kFirstPart;
    const bool goes_on = type == kMiddlePart || type == kLastPart;
    if (!begins && !goes_on) return;  // Of a later version; not of a write.
    if (begins == fragment_.has_value() && !after_damage_) {
      AddDamage(at, begins ? "it begins inside another record"
                           : "the beginning of the record is missing");
    }
    if (begins) fragment_ = Fragment{at, {}};
    if (!fragment_.has_value()) return;  // Its beginning was damaged.
    fragment_->payload += payload;
    after_damage_ = false;
    if (type == kFirstPart || type == kMiddlePart) return;
    contents_.records.push_back(std::move(fragment_->payload));
    fragment_.reset();
  }

  /// At something that is no record. False at the end of what was written.
  bool PassDamage() {
    const std::optional<std::size_t> length = TrueLength();
    if (!length.has_value() && IsTorn()) {
      Tear(fragment_.has_value() ? fragment_->offset : at_);
      return false;
    }
    if (length.has_value()) {
      AddDamage(at_, fmt::format("its length is damaged: it says {} bytes, the "
                                 "checksum is that of {}",
                                 LengthAt(at_), *length));
    } else {
      AddDamage(at_, "its checksum does not match");
    }
    fragment_.reset();
    after_damage_ = true;
    // What follows is found by its checksum.
    do {
      ++at_;
    } while (at_ < written_ && !IsRecord(at_));
    return at_ < written_;
  }

  /// For a record that ends behind the file: how long it was, if it is all
  /// there.
  std::optional<std::size_t> TrueLength() const {
    if (!HasHeader(at_) || !FitsItsBlock(at_)) return std::nullopt;
    if (EndOf(at_) <= bytes_.size()) return std::nullopt;
    const std::uint32_t checksum = ChecksumAt(at_);
    std::uint32_t crc = Crc32c(bytes_.substr(at_ + kHeader - 1, 1));
    for (std::size_t end = at_ + kHeader;; ++end) {
      if (MaskCrc32c(crc) == checksum) return end - at_ - kHeader;
      if (end == bytes_.size()) return std::nullopt;
      crc = ExtendCrc32c(crc, bytes_.substr(end, 1));
    }
  }

  /// The rest of the file is what an interrupted write may leave.
  bool IsTorn() const {
    if (!HasHeader(at_)) return true;
    if (FitsItsBlock(at_) && EndOf(at_) > bytes_.size()) return true;
    // A hole: the file system made the file longer, not all data came. It
    // begins where a sector does. No record of ours ends in as many zeros.
    constexpr std::size_t kSector = 512;
    constexpr std::size_t kLeastHole = 9;
    const std::size_t hole = (written_ + kSector - 1) / kSector * kSector;
    return hole > at_ && hole + kLeastHole <= bytes_.size() &&
           EndOf(at_) > hole;
  }

  void Tear(std::uint64_t offset) {
    contents_.torn = TornTail{offset, bytes_.size() - offset};
  }

  void AddDamage(std::uint64_t offset, std::string what) {
    contents_.damage.push_back({offset, std::move(what)});
  }

  const std::string_view bytes_;
  const std::size_t written_;  ///< There are only zeros from here on.
  std::size_t at_ = 0;
  std::optional<Fragment> fragment_;
  bool after_damage_ = false;
  LogContents contents_;
};

}  // namespace

LogContents ReadLog(std::string_view bytes) { return LogScanner(bytes).Run(); }

}  // namespace devmgr::checkpoint
