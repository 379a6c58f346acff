// SPDX-License-Identifier: LGPL-2.1-or-later
// mongodb-memory-server with its defaults and the mongodb driver: insert and find, then a
// look at the Unix socket that mongod has bound.
import { lstatSync, existsSync } from 'node:fs';
import { MongoMemoryServer } from 'mongodb-memory-server';
import { MongoClient } from 'mongodb';

const server = await MongoMemoryServer.create();
const client = await MongoClient.connect(server.getUri());
const things = client.db('shop').collection('things');
await things.insertOne({ name: 'nest', legs: 3 });
await things.insertMany([{ name: 'egg' }, { name: 'branch', legs: 1 }]);
const found = await things.findOne({ name: 'nest' });
const all = await things.find({}).toArray();
console.log(`found ${found.name} with ${found.legs} legs among ${all.length}`);
await client.close();

const socket = `/tmp/mongodb-${server.instanceInfo.port}.sock`;
console.log(`mode ${lstatSync(socket).mode.toString(8)}`);
const local = await MongoClient.connect(`mongodb://${encodeURIComponent(socket)}`);
console.log(`ping ${(await local.db('admin').command({ ping: 1 })).ok}`);
await local.close();
await server.stop();
console.log(`socket ${existsSync(socket) ? 'left' : 'gone'}`);
