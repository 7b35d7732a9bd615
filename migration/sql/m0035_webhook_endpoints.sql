-- Endpoints beside the default one of a taxpayer. In webhooks, deliveries, attempts and replays the column `taxpayer_id` is the
-- key of the endpoint, and so is the key of its lane: the taxpayer's id for the default endpoint, for an added one its own id as
-- a negative number, which no taxpayer has. So the indexes of one endpoint's chains and due deliveries stay as they are, and a
-- default endpoint costs nothing more.

-- The taxpayer that an added endpoint belongs to. Null: the default endpoint, whose key is that id.
ALTER TABLE webhooks ADD COLUMN owner_id bigint;
ALTER TABLE deliveries ADD COLUMN owner_id bigint;
ALTER TABLE replays ADD COLUMN owner_id bigint;
ALTER TABLE webhooks ADD COLUMN description text;
CREATE INDEX webhooks_by_owner_id ON webhooks (owner_id);
