#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# needs: command:perl:perl
. "${0%/*}/lib"

cat >program.pl <<-'END'
	use strict; use warnings;
	use File::Temp qw(tempfile tempdir :seekable); use File::Copy qw(move copy); use File::Find; use File::Path qw(make_path remove_tree);
	use Fcntl qw(:flock); use SDBM_File;
	my ($fh, $name) = tempfile("nestXXXXXX", TMPDIR => 1, UNLINK => 1);
	print $fh "x" x 100000; close $fh;
	die $name unless $name =~ m{^/tmp/nest} && -s $name == 100000;
	my $anon = tempfile(); print $anon "wren\n"; seek $anon, 0, 0; die unless <$anon> eq "wren\n";
	open my $undef, "+>", undef or die $!; print $undef "anonymous"; die if (stat $undef)[3] != 0;
	my $dir = tempdir(CLEANUP => 1);
	make_path(map { "$dir/a$_/b/c" } 1 .. 20);
	copy($name, "$dir/a1/copy") or die $!; move("$dir/a1/copy", "$dir/a2/moved") or die $!;
	my $n = 0; find(sub { $n++ }, $dir); die "found $n" unless $n == 62;
	remove_tree($dir, { keep_root => 1 }); opendir my $d, $dir; die unless 2 == grep { 1 } readdir $d;
	tie my %h, "SDBM_File", "$dir/db", 0x42, 0600 or die $!;
	$h{$_} = $_ * 2 for 1 .. 500; untie %h;
	tie %h, "SDBM_File", "$dir/db", 0, 0600 or die $!; die unless keys(%h) == 500 && $h{250} == 500; untie %h;
	open my $l, ">>", "$dir/lock"; flock $l, LOCK_EX or die $!;
	open my $m, ">>", "$dir/lock"; die "two holders" if flock $m, LOCK_EX | LOCK_NB;
	{ local ($^I, @ARGV) = (".bak", "$dir/edit"); open my $e, ">", "$dir/edit"; print $e "old\n"; close $e;
	  while (<>) { s/old/new/; print } }
	open my $e, "<", "$dir/edit"; die unless <$e> eq "new\n" && -e "$dir/edit.bak";
END
perl program.pl
equal 'left in /tmp' "$(ls /tmp | sort | xargs)" 'home program.pl'
