// SPDX-License-Identifier: Apache-2.0
//
// Lists of one kind of thing: sorted, and shown as a table, as names, or as a
// document.
#pragma once

#include <devmgr/status_types.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objects.h"
#include "session.h"
#include "text.h"

namespace devmgr::ctl {

using Row = std::vector<Cell>;

/// Compares part by part, numbers in names as numbers.
inline bool PartsLess(const std::vector<std::string>& a,
                      const std::vector<std::string>& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const std::string& x, const std::string& y) {
        return NaturalLess(x, y);
      });
}

/// How one kind is listed. `ItemOf(info)` is what programs get of it.
template <typename Info>
struct Listing {
  const char* list_kind;  ///< `PodList`.
  const char* name_kind;  ///< `pod`; null: names stand alone, if there are any.
  std::vector<std::string> headers;
  std::vector<std::string> wide_headers;
  /// Null: the order that they have.
  std::vector<std::string> (*sort_key)(const Info&);
  std::string (*name)(const Info&);  ///< Empty: none to be printed.
  Row (*row)(const Session&, const Info&);
  Row (*wide_row)(const Session&, const Info&);
};

template <typename Info>
void SortBy(const Listing<Info>& listing, std::vector<Info>& infos) {
  if (listing.sort_key == nullptr) return;
  std::stable_sort(infos.begin(), infos.end(),
                   [&](const Info& a, const Info& b) {
                     return PartsLess(listing.sort_key(a), listing.sort_key(b));
                   });
}

template <typename Info>
Table TableOf(const Session& session, const std::vector<Info>& infos,
              const Listing<Info>& listing) {
  std::vector<std::string> headers = listing.headers;
  if (session.wide()) {
    headers.insert(headers.end(), listing.wide_headers.begin(),
                   listing.wide_headers.end());
  }
  Table table = session.MakeTable(std::move(headers));
  for (const Info& info : infos) {
    Row row = listing.row(session, info);
    if (session.wide()) {
      for (Cell& cell : listing.wide_row(session, info))
        row.push_back(std::move(cell));
    }
    table.Add(std::move(row));
  }
  return table;
}

/// For people: a table or names. An empty one is a line on stderr.
template <typename Info>
void PrintLines(const Session& session, const std::vector<Info>& infos,
                const Listing<Info>& listing) {
  const bool alone = listing.name_kind == nullptr;
  if (session.options().format == Format::kName && (alone || !infos.empty())) {
    for (const Info& info : infos) {
      const std::string name = Clean(listing.name(info));
      if (name.empty()) continue;
      if (!alone) session.out() << listing.name_kind << "/";
      session.out() << name << "\n";
    }
    return;
  }
  Table table = TableOf(session, infos, listing);
  session.Print(table);
}

template <typename Info>
absl::Status List(const Session& session, std::vector<Info> infos,
                  const Listing<Info>& listing) {
  SortBy(listing, infos);
  if (session.is_document()) {
    std::vector<Json> items;
    for (const Info& info : infos) items.push_back(ItemOf(info));
    PrintDocument(session.out(), ListOf(listing.list_kind, std::move(items)),
                  session.options().format);
  } else {
    PrintLines(session, infos, listing);
  }
  return absl::OkStatus();
}

/// Of a name that was given: the object itself for programs, where it is one.
template <typename Info>
absl::Status ListNamed(const Session& session, std::vector<Info> infos,
                       const Listing<Info>& listing) {
  if (!session.is_document() || infos.size() != 1) {
    return List(session, std::move(infos), listing);
  }
  const std::string_view list_kind = listing.list_kind;
  const std::string kind(list_kind.substr(0, list_kind.rfind("List")));
  PrintDocument(session.out(), DocumentOf(kind, ItemOf(infos.front())),
                session.options().format);
  return absl::OkStatus();
}

// Those of `get`.

/// In the order to show them: by name, numbers in names as numbers.
void Sort(std::vector<PodInfo>& pods);
void Sort(std::vector<ClaimInfo>& claims);
void Sort(std::vector<DeviceInfo>& devices);

/// A table, or one name per line; an empty list is a line on stderr.
void PrintList(const Session& session, const std::vector<PodInfo>& pods);
void PrintList(const Session& session, const std::vector<ClaimInfo>& claims);
void PrintList(const Session& session, const std::vector<DeviceInfo>& devices);

}  // namespace devmgr::ctl
