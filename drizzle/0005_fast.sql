-- A claim and a mark write the row anew, and would copy a payload that stands in it.
ALTER TABLE "webhook_inbox" SET (toast_tuple_target = 128);
