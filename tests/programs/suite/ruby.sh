#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:ruby:ruby
# long
. "${0%/*}/lib"

cat >program.rb <<-'END'
	require "tempfile"; require "tmpdir"; require "fileutils"; require "pstore"; require "socket"
	raise Dir.tmpdir unless Dir.tmpdir == "/tmp"
	Tempfile.create("nest") { |f| f.write("x" * 50000); f.flush; raise unless File.size(f.path) == 50000 }
	Tempfile.create(anonymous: true) { |f| f.write "a" } if RUBY_VERSION >= "3.4"
	Dir.mktmpdir do |d|
	  FileUtils.mkdir_p((1..20).map { |i| "#{d}/a#{i}/b" })
	  FileUtils.cp_r("#{d}/a1", "#{d}/copy")
	  raise unless Dir.glob("#{d}/**/*").size == 42
	  store = PStore.new("#{d}/store")
	  store.transaction { store[:bird] = "wren" }
	  raise unless store.transaction(true) { store[:bird] } == "wren"
	  UNIXServer.open("#{d}/s") { |s| c = UNIXSocket.new("#{d}/s"); p = s.accept; c.puts "hi"; raise unless p.gets == "hi\n" }
	  File.open("#{d}/l", "w") { |a| a.flock(File::LOCK_EX); File.open("#{d}/l") { |b| raise if b.flock(File::LOCK_EX | File::LOCK_NB) } }
	end
	raise unless Dir.children("/tmp").sort == ["home", "program.rb"]
END
ruby program.rb
